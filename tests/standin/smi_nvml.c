/* The stand-in nvidia-smi's way to NVML. */
#define _GNU_SOURCE
#include "smi.h"
#include "state.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *library;

void *smi_need(const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "nvidia-smi: libnvidia-ml.so.1 has no %s\n", name);
        exit(1);
    }
    return found;
}

unsigned smi_open(void)
{
    unsigned count = 0;
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n%s\n",
                dlerror());
        exit(12);
    }
    if (CALL(nvmlInit_v2)) {
        fputs("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
              stderr);
        exit(9);
    }
    CALL(nvmlDeviceGetCount_v2, &count);
    if (!count) {
        puts("No devices were found");
        exit(6);
    }
    return count;
}

struct shown smi_look(unsigned index)
{
    struct shown gpu = {.index = index, .memory = {.version = NVML_VERSION(nvmlMemory_v2_t, 2)}};
    CALL(nvmlDeviceGetHandleByIndex_v2, index, &gpu.device);
    CALL(nvmlDeviceGetName, gpu.device, gpu.name, (unsigned)sizeof gpu.name);
    CALL(nvmlDeviceGetUUID, gpu.device, gpu.uuid, (unsigned)sizeof gpu.uuid);
    CALL(nvmlDeviceGetTemperature, gpu.device, 0, &gpu.celsius);
    CALL(nvmlDeviceGetPowerUsage, gpu.device, &gpu.milliwatts);
    CALL(nvmlDeviceGetEnforcedPowerLimit, gpu.device, &gpu.most_milliwatts);
    CALL(nvmlDeviceGetPersistenceMode, gpu.device, &gpu.persistence);
    CALL(nvmlDeviceGetMemoryInfo_v2, gpu.device, &gpu.memory);
    CALL(nvmlDeviceGetUtilizationRates, gpu.device, &gpu.use);
    return gpu;
}

unsigned long long smi_mib(unsigned long long bytes)
{
    return bytes / STANDIN_MIB;
}
