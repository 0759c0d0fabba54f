/* The stand-in libnvidia-ml.so.1: which GPUs there are, and their figures. */
#define _GNU_SOURCE
#include "nvml.h"
#include "nvml_use.h"

#include <stdio.h>
#include <string.h>

static int users; /* nvmlInit counts */
static int gpus[STANDIN_GPUS], count;

/* --- beginning and end ----------------------------------------------------------------------------- */

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    if (!state())
        return NVML_ERROR_DRIVER_NOT_LOADED;
    count = 0;
    for (int i = 0; i < state()->count; i++)
        if (state_visible(i))
            gpus[count++] = i;
    users++;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

EXPORT nvmlReturn_t nvmlInit(void)
{
    nvmlReturn_t result = nvmlInitWithFlags(0);
    return result ? result : count ? NVML_SUCCESS : NVML_ERROR_DRIVER_NOT_LOADED;
}

EXPORT nvmlReturn_t nvmlShutdown(void)
{
    if (!users)
        return NVML_ERROR_UNINITIALIZED;
    users--;
    return NVML_SUCCESS;
}

nvmlReturn_t nvml_gpu(nvmlDevice_t device, int *gpu)
{
    if (!users)
        return NVML_ERROR_UNINITIALIZED;
    for (int i = 0; i < count; i++)
        if (device == &state()->gpus[gpus[i]]) {
            *gpu = gpus[i];
            return NVML_SUCCESS;
        }
    return NVML_ERROR_INVALID_ARGUMENT;
}

EXPORT const char *nvmlErrorString(nvmlReturn_t result)
{
    switch (result) {
    case NVML_SUCCESS: return "Success";
    case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
    case NVML_ERROR_NOT_FOUND: return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case NVML_ERROR_FUNCTION_NOT_FOUND: return "Function Not Found";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH: return "Argument Version Mismatch";
    }
    return "Unknown Error";
}

static nvmlReturn_t say(char *text, unsigned length, const char *said)
{
    if (!users)
        return NVML_ERROR_UNINITIALIZED;
    if (strlen(said) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(text, said, strlen(said) + 1);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *text, unsigned length)
{
    return say(text, length, nvml_branch()->version);
}

EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *text, unsigned length)
{
    char whole[64];
    snprintf(whole, sizeof whole, "%d.%s", nvml_branch()->cuda, nvml_branch()->version);
    return say(text, length, whole);
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = 13010;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

EXPORT nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *text, unsigned length)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    FILE *file = pid ? fopen(path, "r") : NULL;
    if (!file)
        return NVML_ERROR_NOT_FOUND;
    const size_t got = length ? fread(text, 1, length - 1, file) : 0;
    fclose(file);
    if (length)
        text[got] = '\0'; /* the first word ends with a zero of its own */
    return got ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

/* --- which GPUs ------------------------------------------------------------------------------------ */

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *found)
{
    *found = (unsigned)count;
    return users ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned *found)
{
    return nvmlDeviceGetCount_v2(found);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
    if (!users)
        return NVML_ERROR_UNINITIALIZED;
    if (index >= (unsigned)count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = &state()->gpus[gpus[index]];
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

static void bus_id(int gpu, char *text, size_t length)
{
    snprintf(text, length, "00000000:%02X:00.0", gpu + 1);
}

static nvmlReturn_t find(const char *wanted, bool by_uuid, nvmlDevice_t *device)
{
    char bus[32];
    for (int i = 0; i < count; i++) {
        struct gpu *gpu = &state()->gpus[gpus[i]];
        bus_id(gpus[i], bus, sizeof bus);
        if (strcmp(wanted, by_uuid ? gpu->uuid : bus) == 0) {
            *device = gpu;
            return NVML_SUCCESS;
        }
    }
    return users ? NVML_ERROR_NOT_FOUND : NVML_ERROR_UNINITIALIZED;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    return find(uuid, true, device);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus, nvmlDevice_t *device)
{
    return find(bus, false, device);
}

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *text, unsigned length)
{
    int gpu;
    nvmlReturn_t result = nvml_gpu(device, &gpu);
    return result ? result : say(text, length, device->name);
}

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *text, unsigned length)
{
    int gpu;
    nvmlReturn_t result = nvml_gpu(device, &gpu);
    return result ? result : say(text, length, device->uuid);
}

EXPORT nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor)
{
    int gpu = 0;
    nvmlReturn_t result = nvml_gpu(device, &gpu);
    *minor = (unsigned)gpu;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
    int gpu;
    nvmlReturn_t result = nvml_gpu(device, &gpu);
    for (int i = 0; !result && i < count; i++)
        if (gpus[i] == gpu)
            *index = (unsigned)i;
    return result;
}

/* --- figures --------------------------------------------------------------------------------------- */

/* Each takes where to write one number; the value may use `gpu`. */
#define FIGURE(name, type, value)                                                                  \
    EXPORT nvmlReturn_t name(nvmlDevice_t device, type *found)                                     \
    {                                                                                              \
        int gpu = 0;                                                                               \
        nvmlReturn_t result = nvml_gpu(device, &gpu);                                              \
        if (!result)                                                                               \
            *found = (value);                                                                      \
        return result;                                                                             \
    }

FIGURE(nvmlDeviceGetPowerUsage, unsigned, 20000 + 2000 * nvml_busy_percent(gpu, 0)) /* mW */
FIGURE(nvmlDeviceGetEnforcedPowerLimit, unsigned, 250000)
FIGURE(nvmlDeviceGetFanSpeed, unsigned, 30)
FIGURE(nvmlDeviceGetNumGpuCores, unsigned, 64 * STANDIN_MULTIPROCESSORS)
FIGURE(nvmlDeviceGetComputeMode, int, 0)
FIGURE(nvmlDeviceGetPersistenceMode, int, !state()->no_persistence)
FIGURE(nvmlDeviceGetMaxMigDeviceCount, unsigned, 0)

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned *celsius)
{
    int gpu = 0;
    (void)sensor;
    nvmlReturn_t result = nvml_gpu(device, &gpu);
    *celsius = result ? 0 : 30 + nvml_busy_percent(gpu, 0) / 2;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *now, unsigned *later)
{
    (void)device, (void)now, (void)later;
    return NVML_ERROR_NOT_SUPPORTED;
}

EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    int gpu;
    *major = 8;
    *minor = 0;
    return nvml_gpu(device, &gpu);
}

/* The newer form tells what the driver keeps for itself, the older one has it in `used`. */
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    int gpu;
    if (memory->version != NVML_VERSION(nvmlMemory_v2_t, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t result = nvml_gpu(device, &gpu);
    if (result)
        return result;
    state_lock();
    memory->used = state_used(gpu);
    state_unlock();
    memory->total = device->memory + STANDIN_RESERVED;
    memory->reserved = STANDIN_RESERVED;
    memory->free = device->memory - memory->used;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlMemory_v2_t whole = {.version = NVML_VERSION(nvmlMemory_v2_t, 2)};
    nvmlReturn_t result = nvmlDeviceGetMemoryInfo_v2(device, &whole);
    if (!result)
        *memory = (nvmlMemory_t){whole.total, whole.free, whole.used + whole.reserved};
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
    int gpu;
    *memory = (nvmlBAR1Memory_t){256 * STANDIN_MIB, 255 * STANDIN_MIB, STANDIN_MIB};
    return nvml_gpu(device, &gpu);
}
