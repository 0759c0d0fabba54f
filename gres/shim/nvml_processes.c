/* Processes that use a GPU; only the session's own if it has a part of the GPU. */
#include "nvml_processes.h"

#include "ledger.h"
#include "load.h"
#include "nvml_devices.h"
#include "nvml_driver.h"
#include "nvml_wrap.h"

#include <stdlib.h>

typedef nvmlReturn_t running(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v2_t *infos);

/* The driver's lists in their newest form, and the one before it, which drivers below 510 have. */
static running *real_compute_v3, *real_compute_v2, *real_graphics_v3, *real_graphics_v2;
static running *real_mps_v3, *real_mps_v2;

enum { COMPUTE, GRAPHICS, MPS, KINDS };

static int ask_driver(int kind, nvmlDevice_t device, nvmlProcessInfo_v2_t *infos)
{
    running *const newest[KINDS] = {real_compute_v3, real_graphics_v3, real_mps_v3};
    running *const older[KINDS] = {real_compute_v2, real_graphics_v2, real_mps_v2};
    unsigned int count = NVML_MOST;
    nvmlReturn_t result = newest[kind](device, &count, infos);
    if (result == NVML_ERROR_FUNCTION_NOT_FOUND) {
        count = NVML_MOST;
        result = older[kind](device, &count, infos);
    }
    return result ? 0 : (int)count;
}

/* --- the session's processes ------------------------------------------------------------------------ */

int nvml_is_own(int slice_index, unsigned int pid)
{
    int found = 0;
    struct ledger_process *counted = pid ? calloc(NVML_MOST, sizeof *counted) : NULL;
    const int all = counted ? ledger_processes(slice_index, counted, NVML_MOST) : 0;
    for (int index = 0; index < all && !found; index++)
        found = counted[index].pid == (pid_t)pid;
    free(counted);
    return found;
}

/* Memory of a process as the driver reports it; 0 where unknown. */
static nvmlBytes by_driver(const nvmlProcessInfo_v2_t *infos, int count, pid_t pid)
{
    for (int index = 0; index < count; index++)
        if (infos[index].pid == (unsigned int)pid &&
            infos[index].usedGpuMemory != NVML_VALUE_NOT_AVAILABLE)
            return infos[index].usedGpuMemory;
    return 0;
}

/* What root has seen beyond the ledger (contexts and code), where the driver does not tell it by process: in
 * equal parts, since it is about the same for each. */
static void add_unknown(int slice_index, struct nvml_process *found, int number)
{
    struct load load;
    nvmlBytes counted = 0;
    if (!number || load_of(slice_index, &load))
        return;
    for (int index = 0; index < number; index++)
        counted += found[index].bytes;
    const nvmlBytes held = (nvmlBytes)load.memory;
    for (int index = 0; held > counted && index < number; index++)
        found[index].bytes += (held - counted) / (nvmlBytes)number;
}

/* On the heap: threads of programs may have small stacks. */
struct told {
    struct ledger_process counted[NVML_MOST];
    nvmlProcessInfo_v2_t infos[NVML_MOST];
};

static int processes_own(nvmlDevice_t device, int slice_index, struct told *told, struct nvml_process *found)
{
    const int translated = nvml_translates(NVML_PIDS_OF_MEMORY);
    const int known = translated ? ask_driver(COMPUTE, device, told->infos) : 0;
    const int all = ledger_processes(slice_index, told->counted, NVML_MOST);
    int number = 0;
    for (int index = 0; index < all; index++) {
        const struct ledger_process *one = &told->counted[index];
        const nvmlBytes seen = one->pid ? by_driver(told->infos, known, one->pid) : 0;
        const nvmlBytes bytes = seen > one->bytes ? seen : one->bytes;
        if (bytes)
            found[number++] = (struct nvml_process){(unsigned int)one->pid, bytes};
    }
    if (!translated)
        add_unknown(slice_index, found, number);
    return number;
}

/* The driver's list of a kind, filtered. */
static int processes_filtered(int kind, nvmlDevice_t device, int slice_index, struct told *told,
                              struct nvml_process *found)
{
    int number = 0;
    if (!nvml_translates(NVML_PIDS_OF_LISTS)) /* the host's PIDs, which may be equal to some here */
        return 0;
    for (int index = ask_driver(kind, device, told->infos) - 1; index >= 0; index--)
        if (nvml_is_own(slice_index, told->infos[index].pid))
            found[number++] =
                (struct nvml_process){told->infos[index].pid, told->infos[index].usedGpuMemory};
    return number;
}

/* Compute processes come from the ledger. The list is the caller's to free; -1 without memory for it. */
static int processes_of_kind(int kind, nvmlDevice_t device, int slice_index, struct nvml_process **found)
{
    int number = -1;
    struct told *told = malloc(sizeof *told);
    *found = calloc(NVML_MOST, sizeof **found);
    if (told && *found)
        number = kind == COMPUTE ? processes_own(device, slice_index, told, *found)
                                 : processes_filtered(kind, device, slice_index, told, *found);
    free(told);
    return number;
}

int nvml_own_processes(nvmlDevice_t device, int slice_index, struct nvml_process **found)
{
    return processes_of_kind(COMPUTE, device, slice_index, found);
}

/* NVML's rule for lists: the count is always returned, the entries only if all of them fit. */
static nvmlReturn_t processes_fit(int number, unsigned int *count, const void *room)
{
    const unsigned int most = room ? *count : 0;
    if (number < 0)
        return NVML_ERROR_MEMORY;
    *count = (unsigned int)number;
    return *count > most ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

/* --- the lists -------------------------------------------------------------------------------------- */

static nvmlReturn_t list_v2(int kind, nvmlDevice_t device, int slice_index, unsigned int *count,
                            nvmlProcessInfo_v2_t *infos)
{
    struct nvml_process *own;
    const int number = processes_of_kind(kind, device, slice_index, &own);
    nvmlReturn_t result = processes_fit(number, count, infos);
    for (int index = 0; !result && index < number; index++)
        infos[index] = (nvmlProcessInfo_v2_t){own[index].pid, own[index].bytes, NVML_NO_INSTANCE,
                                              NVML_NO_INSTANCE};
    free(own);
    return result;
}

static nvmlReturn_t list_v1(int kind, nvmlDevice_t device, int slice_index, unsigned int *count,
                            nvmlProcessInfo_v1_t *infos)
{
    struct nvml_process *own;
    const int number = processes_of_kind(kind, device, slice_index, &own);
    nvmlReturn_t result = processes_fit(number, count, infos);
    for (int index = 0; !result && index < number; index++)
        infos[index] = (nvmlProcessInfo_v1_t){own[index].pid, own[index].bytes};
    free(own);
    return result;
}

/* If the session has no part of the GPU, the driver checks the arguments. */
#define LIST(name, kind, info, form)                                                                \
    WRAP(name, nvmlDevice_t device, unsigned int *count, info *infos)                               \
    {                                                                                               \
        const int slice_index = count ? nvml_slice_index(device) : -1;                              \
        return slice_index < 0 ? real_##name(device, count, infos)                                  \
                               : form(kind, device, slice_index, count, infos);                     \
    }

LIST(nvmlDeviceGetComputeRunningProcesses, COMPUTE, nvmlProcessInfo_v1_t, list_v1)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, COMPUTE, nvmlProcessInfo_v2_t, list_v2)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, COMPUTE, nvmlProcessInfo_v2_t, list_v2)
LIST(nvmlDeviceGetGraphicsRunningProcesses, GRAPHICS, nvmlProcessInfo_v1_t, list_v1)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, GRAPHICS, nvmlProcessInfo_v2_t, list_v2)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, GRAPHICS, nvmlProcessInfo_v2_t, list_v2)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, MPS, nvmlProcessInfo_v1_t, list_v1)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, MPS, nvmlProcessInfo_v2_t, list_v2)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, MPS, nvmlProcessInfo_v2_t, list_v2)

/* First queried for the count alone, so that the driver checks the structure's version. */
WRAP(nvmlDeviceGetRunningProcessDetailList, nvmlDevice_t device, nvmlProcessDetailList_v1_t *list)
{
    struct nvml_process *own = NULL;
    const int slice_index = list ? nvml_slice_index(device) : -1;
    if (slice_index < 0)
        return real_nvmlDeviceGetRunningProcessDetailList(device, list);
    nvmlProcessDetailList_v1_t asked = {.version = list->version, .mode = list->mode};
    nvmlReturn_t result = real_nvmlDeviceGetRunningProcessDetailList(device, &asked);
    if (result && result != NVML_ERROR_INSUFFICIENT_SIZE)
        return result;
    const int number =
        list->mode < KINDS ? processes_of_kind((int)list->mode, device, slice_index, &own) : 0;
    result = processes_fit(number, &list->numProcArrayEntries, list->procArray);
    for (int index = 0; !result && index < number; index++)
        list->procArray[index] = (nvmlProcessDetail_v1_t){
            own[index].pid, own[index].bytes, NVML_NO_INSTANCE, NVML_NO_INSTANCE, 0};
    free(own);
    return result;
}

HOOKS(nvml_processes,
    {"nvmlDeviceGetComputeRunningProcesses_v3", NULL, (void **)&real_compute_v3},
    {"nvmlDeviceGetComputeRunningProcesses_v2", NULL, (void **)&real_compute_v2},
    {"nvmlDeviceGetGraphicsRunningProcesses_v3", NULL, (void **)&real_graphics_v3},
    {"nvmlDeviceGetGraphicsRunningProcesses_v2", NULL, (void **)&real_graphics_v2},
    {"nvmlDeviceGetMPSComputeRunningProcesses_v3", NULL, (void **)&real_mps_v3},
    {"nvmlDeviceGetMPSComputeRunningProcesses_v2", NULL, (void **)&real_mps_v2},
    HOOK(nvmlDeviceGetComputeRunningProcesses),
    HOOK(nvmlDeviceGetComputeRunningProcesses_v2),
    HOOK(nvmlDeviceGetComputeRunningProcesses_v3),
    HOOK(nvmlDeviceGetGraphicsRunningProcesses),
    HOOK(nvmlDeviceGetGraphicsRunningProcesses_v2),
    HOOK(nvmlDeviceGetGraphicsRunningProcesses_v3),
    HOOK(nvmlDeviceGetMPSComputeRunningProcesses),
    HOOK(nvmlDeviceGetMPSComputeRunningProcesses_v2),
    HOOK(nvmlDeviceGetMPSComputeRunningProcesses_v3),
    HOOK(nvmlDeviceGetRunningProcessDetailList))
