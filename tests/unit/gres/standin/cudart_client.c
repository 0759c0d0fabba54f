/* A program of CUDA's runtime library: prints the error of its first function. Prototypes are its own, so that it
 * needs no header. */
#include <stdio.h>

int cudaGetDeviceCount(int *count);
const char *cudaGetErrorName(int error);

int main(void)
{
    int count = -1;
    puts(cudaGetErrorName(cudaGetDeviceCount(&count)));
    return 0;
}
