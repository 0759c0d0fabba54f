/* The session's GPUs, as nvidia-smi and others query them from NVML. */
#include "nvml_devices.h"

#include "nvml_wrap.h"
#include "slice.h"

#include <string.h>

#define UUID_SIZE 96

NEEDS(nvmlDeviceGetUUID, nvmlDevice_t device, char *text, unsigned int length);

/* MIG devices are reached through the handle of their GPU, so with them every GPU is listed. */
static int has_mig(void)
{
    for (int index = 0; index < slice()->count; index++)
        if (!strncmp(slice()->device[index].uuid, "MIG-", 4))
            return 1;
    return 0;
}

static int is_ours(nvmlDevice_t device)
{
    char uuid[UUID_SIZE];
    if (has_mig())
        return 1;
    return !real_nvmlDeviceGetUUID(device, uuid, sizeof uuid) && slice_find(uuid) >= 0;
}

int nvml_slice_index(nvmlDevice_t device)
{
    char uuid[UUID_SIZE];
    if (real_nvmlDeviceGetUUID(device, uuid, sizeof uuid))
        return -1;
    const int found = slice_find(uuid);
    return found >= 0 && slice()->device[found].memory ? found : -1;
}

NEEDS(nvmlDeviceGetCount_v2, unsigned int *count);
NEEDS(nvmlDeviceGetHandleByIndex_v2, unsigned int index, nvmlDevice_t *device);

/* The session's GPU of this number; counts all of them when `wanted` exceeds that. Usually the device cgroup
 * has hidden the others already. */
static nvmlReturn_t find_ours(unsigned int wanted, nvmlDevice_t *found, unsigned int *count)
{
    unsigned int all;
    nvmlReturn_t result = real_nvmlDeviceGetCount_v2(&all);
    *count = 0;
    for (unsigned int index = 0; !result && index < all; index++) {
        nvmlDevice_t device;
        if (real_nvmlDeviceGetHandleByIndex_v2(index, &device) || !is_ours(device))
            continue;
        if ((*count)++ == wanted) {
            *found = device;
            return NVML_SUCCESS;
        }
    }
    return result ? result : NVML_ERROR_INVALID_ARGUMENT;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    nvmlDevice_t none;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t result = find_ours(~0u, &none, count);
    return result == NVML_ERROR_INVALID_ARGUMENT ? NVML_SUCCESS : result;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    return nvmlDeviceGetCount_v2(count);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    unsigned int count;
    return device ? find_ours(index, device, &count) : NVML_ERROR_INVALID_ARGUMENT;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

WRAP(nvmlDeviceGetIndex, nvmlDevice_t device, unsigned int *index)
{
    nvmlReturn_t result = real_nvmlDeviceGetIndex(device, index);
    unsigned int count;
    for (unsigned int number = 0; !result; number++) {
        nvmlDevice_t other;
        if (find_ours(number, &other, &count))
            break;
        if (other == device) {
            *index = number;
            break;
        }
    }
    return result;
}

static nvmlReturn_t only_ours(nvmlReturn_t result, nvmlDevice_t *device)
{
    return !result && !is_ours(*device) ? NVML_ERROR_NOT_FOUND : result;
}

WRAP(nvmlDeviceGetHandleByUUID, const char *uuid, nvmlDevice_t *device)
{
    return only_ours(real_nvmlDeviceGetHandleByUUID(uuid, device), device);
}

/* A newer form, with the UUID as text or bytes, which only the driver needs to parse. */
WRAP(nvmlDeviceGetHandleByUUIDV, const void *uuid, nvmlDevice_t *device)
{
    return only_ours(real_nvmlDeviceGetHandleByUUIDV(uuid, device), device);
}

WRAP(nvmlDeviceGetHandleBySerial, const char *serial, nvmlDevice_t *device)
{
    return only_ours(real_nvmlDeviceGetHandleBySerial(serial, device), device);
}

WRAP(nvmlDeviceGetHandleByPciBusId, const char *bus, nvmlDevice_t *device)
{
    return only_ours(real_nvmlDeviceGetHandleByPciBusId(bus, device), device);
}

WRAP(nvmlDeviceGetHandleByPciBusId_v2, const char *bus, nvmlDevice_t *device)
{
    return only_ours(real_nvmlDeviceGetHandleByPciBusId_v2(bus, device), device);
}

HOOKS(nvml_devices,
    NEEDED(nvmlDeviceGetUUID),
    HOOK(nvmlDeviceGetCount_v2),
    HOOK(nvmlDeviceGetHandleByIndex_v2),
    HOOK(nvmlDeviceGetIndex),
    HOOK(nvmlDeviceGetHandleByUUID),
    HOOK(nvmlDeviceGetHandleByUUIDV),
    HOOK(nvmlDeviceGetHandleBySerial),
    HOOK(nvmlDeviceGetHandleByPciBusId),
    HOOK(nvmlDeviceGetHandleByPciBusId_v2))
