/* NVML with two GPUs for test_nvml.py: the first has device file 1, the second 0 and two MIG
 * devices. Structures are written here once more, by nvml.h's documentation, so that a mistake in
 * portal/node/gpu/nvml.py is not repeated. */
#include <string.h>

enum { SUCCESS, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, WRONG_VERSION = 25 };

typedef struct device {
    const char *uuid, *name;
    unsigned long long memory;
    unsigned minor, instance, part;
} *device;

typedef struct {
    unsigned long long total, free, used;
} memory_t;

typedef struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
} memory_v2_t;

typedef struct {
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
} fabric_t;

typedef struct {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
} process_t;

typedef struct {
    unsigned pid;
    unsigned long long time;
    unsigned sm, memory, encoder, decoder;
} sample_t;

static struct device gpus[] = {
    {"GPU-a", "First", 8ull << 30, 1, 0, 0},
    {"GPU-b", "Second", 80ull << 30, 0, 0, 0},
};
static struct device parts[] = {
    {"MIG-1", "Second MIG 1g.10gb", 9728ull << 20, 9, 7, 0},
    {"MIG-2", "Second MIG 1g.10gb", 9728ull << 20, 9, 8, 0},
};
static int open_count;

int nvmlInit_v2(void) { open_count++; return SUCCESS; }
int nvmlShutdown(void) { open_count--; return SUCCESS; }

static int text(char *out, unsigned size, const char *value)
{
    if (strlen(value) >= size)
        return INSUFFICIENT_SIZE;
    strcpy(out, value);
    return SUCCESS;
}

int nvmlSystemGetDriverVersion(char *out, unsigned size) { return text(out, size, "615.43.02"); }
int nvmlDeviceGetName(device d, char *out, unsigned size) { return text(out, size, d->name); }
int nvmlDeviceGetUUID(device d, char *out, unsigned size) { return text(out, size, d->uuid); }
int nvmlDeviceGetMinorNumber(device d, unsigned *out) { *out = d->minor; return SUCCESS; }
int nvmlDeviceGetGpuInstanceId(device d, unsigned *out) { *out = d->instance; return SUCCESS; }
int nvmlDeviceGetComputeInstanceId(device d, unsigned *out) { *out = d->part; return SUCCESS; }
int nvmlDeviceGetCount_v2(unsigned *out) { *out = 2; return SUCCESS; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, device *out)
{
    *out = &gpus[index];
    return index < 2 ? SUCCESS : NOT_FOUND;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, device *out)
{
    for (int i = 0; i < 2; i++)
        if (strcmp(gpus[i].uuid, uuid) == 0) {
            *out = &gpus[i];
            return SUCCESS;
        }
    return NOT_FOUND;
}

int nvmlDeviceGetMemoryInfo(device d, memory_t *out)
{
    *out = (memory_t){.total = d->memory, .free = 1, .used = 2};
    return SUCCESS;
}

/* The second one's driver is of before r510. */
int nvmlDeviceGetMemoryInfo_v2(device d, memory_v2_t *out)
{
    if (out->version != 0x02000028)
        return WRONG_VERSION;
    if (d != &gpus[0])
        return NOT_SUPPORTED;
    *out = (memory_v2_t){out->version, d->memory, 300ull << 20, 1, 2ull << 30};
    return SUCCESS;
}

int nvmlDeviceGetPersistenceMode(device d, int *out)
{
    *out = 1;
    return d == &gpus[0] ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetComputeMode(device d, int *out) { *out = d == &gpus[0] ? 3 : 0; return SUCCESS; }

/* The second one has no NVSwitch. */
int nvmlDeviceGetGpuFabricInfo(device d, fabric_t *out)
{
    *out = (fabric_t){{255}, d == &gpus[0] ? 6 : 0, 255, d == &gpus[0] ? 3 : 0};
    return SUCCESS;
}

int nvmlDeviceGetMigMode(device d, unsigned *now, unsigned *later)
{
    *now = *later = d == &gpus[1];
    return d == &gpus[1] ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetMaxMigDeviceCount(device d, unsigned *out) { (void)d; *out = 7; return SUCCESS; }

int nvmlDeviceGetMigDeviceHandleByIndex(device d, unsigned index, device *out)
{
    (void)d;
    if (index != 0 && index != 3)
        return NOT_FOUND;
    *out = &parts[index / 3];
    return SUCCESS;
}

/* 70 processes: more than are asked for at first. The last one's memory is not known. */
int nvmlDeviceGetComputeRunningProcesses_v3(device d, unsigned *count, process_t *out)
{
    const unsigned have = d == &gpus[0] ? 70 : 0, room = *count;
    *count = have;
    if (room < have)
        return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < have; i++)
        out[i] = (process_t){1000 + i, i + 1 == have ? ~0ull : (i + 1) << 20, 0, 0};
    return SUCCESS;
}

/* The first one draws, too; MPS is not there at all. */
int nvmlDeviceGetGraphicsRunningProcesses_v3(device d, unsigned *count, process_t *out)
{
    if (d != &gpus[0] || *count < 1)
        return NOT_SUPPORTED;
    *count = 1;
    out[0] = (process_t){1000, 5 << 20, 0, 0};
    return SUCCESS;
}

int nvmlDeviceGetProcessUtilization(device d, sample_t *out, unsigned *count,
                                    unsigned long long since)
{
    if (d != &gpus[0])
        return NOT_SUPPORTED;
    if (since > 100)
        return NOT_FOUND; /* nothing newer */
    if (!out) {
        *count = 3;
        return INSUFFICIENT_SIZE;
    }
    out[0] = (sample_t){1000, 90, 20, 99, 99, 99};
    out[1] = (sample_t){1000, 95, 30, 99, 99, 99};
    out[2] = (sample_t){1001, 95, 7, 99, 99, 99};
    *count = 3;
    return SUCCESS;
}
