/* The parts of NVML's interface that the shim needs: sizes and layouts, as in libnvidia-ml.so.1. */
#ifndef SLIPWAY_NVML_ABI_H
#define SLIPWAY_NVML_ABI_H

typedef int nvmlReturn_t;
#define NVML_SUCCESS 0
#define NVML_ERROR_INVALID_ARGUMENT 2
#define NVML_ERROR_NOT_SUPPORTED 3
#define NVML_ERROR_NOT_FOUND 6
#define NVML_ERROR_INSUFFICIENT_SIZE 7
#define NVML_ERROR_FUNCTION_NOT_FOUND 13
#define NVML_ERROR_MEMORY 20

typedef struct nvmlDevice_st *nvmlDevice_t;
typedef unsigned long long nvmlBytes;

typedef struct {
    nvmlBytes total, free, used;
} nvmlMemory_t;

typedef struct {
    unsigned int version;
    nvmlBytes total, reserved, free, used;
} nvmlMemory_v2_t;

typedef struct {
    unsigned int gpu, memory; /* percent of the last sample period */
} nvmlUtilization_t;

/* A process; version 3 of the functions uses the structure of version 2. */
typedef struct {
    unsigned int pid;
    nvmlBytes usedGpuMemory;
} nvmlProcessInfo_v1_t;

typedef struct {
    unsigned int pid;
    nvmlBytes usedGpuMemory; /* NVML_VALUE_NOT_AVAILABLE if unknown */
    unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_v2_t;
#define NVML_VALUE_NOT_AVAILABLE (~0ull)
#define NVML_NO_INSTANCE (~0u) /* MIG is off */

typedef struct {
    unsigned int pid;
    nvmlBytes usedGpuMemory;
    unsigned int gpuInstanceId, computeInstanceId;
    nvmlBytes usedGpuCcProtectedMemory;
} nvmlProcessDetail_v1_t;

typedef struct {
    unsigned int version;
    unsigned int mode; /* 0 compute, 1 graphics, 2 MPS */
    unsigned int numProcArrayEntries;
    nvmlProcessDetail_v1_t *procArray;
} nvmlProcessDetailList_v1_t;

typedef struct {
    unsigned int pid;
    unsigned long long timeStamp; /* microseconds */
    unsigned int smUtil, memUtil, encUtil, decUtil;
} nvmlProcessUtilizationSample_t;

typedef struct {
    unsigned long long timeStamp;
    unsigned int pid, smUtil, memUtil, encUtil, decUtil, jpgUtil, ofaUtil;
} nvmlProcessUtilizationInfo_v1_t;

typedef struct {
    unsigned int version;
    unsigned int processSamplesCount;
    unsigned long long lastSeenTimeStamp;
    nvmlProcessUtilizationInfo_v1_t *procUtilArray;
} nvmlProcessesUtilizationInfo_v1_t;

typedef struct {
    unsigned long long timeStamp;
    union {
        unsigned int number; /* samples of utilisation are of this type */
        unsigned long long large;
        double real;
    } value;
} nvmlSample_t;
#define NVML_GPU_UTILIZATION_SAMPLES 1
#define NVML_MEMORY_UTILIZATION_SAMPLES 2

_Static_assert(sizeof(nvmlSample_t) == 16, "as in nvml.h");
_Static_assert(sizeof(nvmlMemory_v2_t) == 40, "as in nvml.h");
_Static_assert(sizeof(nvmlProcessInfo_v2_t) == 24, "as in nvml.h");
_Static_assert(sizeof(nvmlProcessDetail_v1_t) == 32, "as in nvml.h");
_Static_assert(sizeof(nvmlProcessUtilizationSample_t) == 32, "as in nvml.h");
_Static_assert(sizeof(nvmlProcessUtilizationInfo_v1_t) == 40, "as in nvml.h");

#endif
