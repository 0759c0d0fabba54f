/* Linked against libcuda.so.1, as programs are that do not look their functions up: prints the memory
 * that it sees, and launches nothing. */
#include <stddef.h>
#include <stdio.h>

int cuInit(unsigned flags);
int cuDeviceGet(int *device, int number);
int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuDriverGetVersion(int *version);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuCtxSynchronize(void);

int main(void)
{
    int device, version;
    size_t total;
    void *context;
    if (cuInit(0) || cuDriverGetVersion(&version) || cuDeviceGet(&device, 0) ||
        cuDeviceTotalMem_v2(&total, device) || cuDevicePrimaryCtxRetain(&context, device) ||
        cuCtxSetCurrent(context) || cuCtxSynchronize())
        return 1;
    printf("{\"total\": %zu, \"version\": %d}\n", total, version);
    return 0;
}
