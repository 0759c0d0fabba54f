/* Initialisation, devices and contexts. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;

static bool initialised;
static int gpus[STANDIN_GPUS];
static int count;

/* --- which GPUs there are ------------------------------------------------------------------------ */

static int find_visible(const char *word, size_t length, const int *all, int of)
{
    char *end;
    long index = 0;
    if (length > 4 && strncmp(word, "GPU-", 4) == 0) {
        for (int i = 0; i < of; i++)
            if (strncmp(state()->gpus[all[i]].uuid, word, length) == 0)
                return all[i];
        return -1;
    }
    for (end = (char *)word; end < word + length && *end >= '0' && *end <= '9'; end++)
        index = index * 10 + (*end - '0');
    return length && end == word + length && index < of ? all[index] : -1;
}

/* CUDA_VISIBLE_DEVICES: the first word that names no GPU ends the list. */
static void choose_devices(const char *words, const int *all, int of)
{
    count = 0;
    while (*words) {
        const size_t length = strcspn(words, ",");
        const int gpu = find_visible(words, length, all, of);
        if (gpu < 0 || count == STANDIN_GPUS)
            return;
        gpus[count++] = gpu;
        words += length + (words[length] == ',');
    }
}

static void find_devices(void)
{
    int all[STANDIN_GPUS], of = 0;
    for (int i = 0; i < state()->count; i++)
        if (state_visible(i))
            all[of++] = i;
    const char *words = getenv("CUDA_VISIBLE_DEVICES");
    if (words) {
        choose_devices(words, all, of);
    } else {
        memcpy(gpus, all, sizeof gpus);
        count = of;
    }
}

int device_count(void)
{
    return count;
}

int device_gpu(int ordinal)
{
    return gpus[ordinal];
}

bool device_valid(int ordinal)
{
    return ordinal >= 0 && ordinal < count;
}

CUresult need_init(void)
{
    return initialised ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

/* A child starts without contexts; it may initialise the driver anew (a real one refuses if the
 * parent had done so, and what the shim does then must be tested, too). */
static void forget(void)
{
    pthread_mutex_init(&driver_lock, NULL);
    initialised = false;
    count = 0;
    contexts_forget();
    allocations_forget();
    mappings_forget();
    pools_forget();
    graphs_forget();
    streams_forget();
    time_forget();
}

static CUresult start(void)
{
    static bool watched;
    if (!watched)
        pthread_atfork(NULL, NULL, forget);
    watched = true;
    if (!state())
        return CUDA_ERROR_NO_DEVICE;
    find_devices();
    if (!count)
        return CUDA_ERROR_NO_DEVICE;
    initialised = true;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuInit(unsigned flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&driver_lock);
    CUresult result = initialised ? CUDA_SUCCESS : start();
    pthread_mutex_unlock(&driver_lock);
    return result;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
    *version = DRIVER_VERSION;
    return CUDA_SUCCESS;
}

/* --- devices ------------------------------------------------------------------------------------- */

EXPORT CUresult cuDeviceGetCount(int *found)
{
    *found = count;
    return need_init();
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    NEED_DEVICE(ordinal);
    *device = ordinal;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    NEED_DEVICE(device);
    snprintf(name, (size_t)length, "%s", state()->gpus[gpus[device]].name);
    return CUDA_SUCCESS;
}

/* The bytes that "GPU-51195a90-…" spells. */
EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    NEED_DEVICE(device);
    const char *text = state()->gpus[gpus[device]].uuid + strlen("GPU-");
    for (int digit = 0; digit < 32; text++) {
        if (*text == '-')
            continue;
        const int value = *text <= '9' ? *text - '0' : *text - 'a' + 10;
        unsigned char *byte = &uuid->bytes[digit / 2];
        *byte = (unsigned char)(digit % 2 ? *byte | value : value << 4);
        digit++;
    }
    return CUDA_SUCCESS;
}
ALIAS(cuDeviceGetUuid, cuDeviceGetUuid_v2);

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    static const struct { int attribute, value; } known[] = {
        {1, 1024},      /* threads of a block */
        {10, 32},       /* threads of a warp */
        {13, 1500000},  /* clock, kHz */
        {16, STANDIN_MULTIPROCESSORS},
        {31, 1},        /* concurrent kernels */
        {39, 1024},     /* threads of a multiprocessor */
        {41, 1},        /* unified addressing */
        {75, 8}, {76, 0}, /* compute capability */
        {83, 1},        /* managed memory */
        {95, 1},        /* cooperative launch */
        {102, 1},       /* virtual memory management */
        {115, 1},       /* memory pools */
    };
    NEED_DEVICE(device);
    *value = attribute == 33 || attribute == 34 ? gpus[device] : 0; /* PCI bus and device */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].attribute == attribute)
            *value = known[i].value;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    NEED_DEVICE(device);
    *major = 8;
    *minor = 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    NEED_DEVICE(device);
    *bytes = state()->gpus[gpus[device]].memory;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem(unsigned *bytes, CUdevice device)
{
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    size_t all;
    CUresult result = cuDeviceTotalMem_v2(&all, device);
    if (!result)
        *bytes = all > UINT32_MAX ? UINT32_MAX : (unsigned)all;
    return result;
}

EXPORT CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device)
{
    NEED_DEVICE(device);
    snprintf(id, (size_t)length, "0000:%02X:00.0", gpus[device] + 1);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    NEED_DEVICE(device);
    NEED_DEVICE(peer);
    *can = device != peer;
    return CUDA_SUCCESS;
}
