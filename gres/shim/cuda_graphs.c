/* Memory that graphs allocate: the driver takes it from the GPU when a graph is uploaded or launched, and
 * keeps it for the next launch of any graph. */
#include "cuda_graphs.h"

#include "cuda_allocations.h"
#include "cuda_device.h"
#include "cuda_graph_memory.h"
#include "cuda_guard.h"
#include "cuda_pools.h"
#include "ledger.h"

#define MOST 64 /* GPUs of one machine */

static struct {
    int known; /* a graph with memory on it has been seen */
    int device;
    uint64_t charged;
} reserved[MOST];

NEEDS(cuDeviceGetGraphMemAttribute, CUdevice, int, uint64_t *);
NEEDS(cuDeviceGraphMemTrim, CUdevice);

/* --- what the driver keeps for graphs; with the guard entered --- */

static uint64_t attribute_of(CUdevice ordinal, int attribute)
{
    uint64_t value;
    if (real_cuDeviceGetGraphMemAttribute(ordinal, attribute, &value))
        return reserved[ordinal].charged;
    return value;
}

static void sync_device(CUdevice ordinal)
{
    uint64_t now = attribute_of(ordinal, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
    if (now > reserved[ordinal].charged)
        ledger_charge(reserved[ordinal].device, now - reserved[ordinal].charged);
    else
        ledger_release(reserved[ordinal].device, reserved[ordinal].charged - now);
    reserved[ordinal].charged = now;
}

void graphs_sync(void)
{
    guard_enter();
    for (CUdevice ordinal = 0; ordinal < MOST; ordinal++)
        if (reserved[ordinal].known)
            sync_device(ordinal);
    guard_leave();
}

void graphs_trim(void)
{
    guard_enter();
    for (CUdevice ordinal = 0; ordinal < MOST; ordinal++)
        if (reserved[ordinal].known && !real_cuDeviceGraphMemTrim(ordinal))
            sync_device(ordinal);
    guard_leave();
}

void graphs_forget(void)
{
    for (CUdevice ordinal = 0; ordinal < MOST; ordinal++)
        reserved[ordinal].known = 0;
}

static uint64_t growth(const struct graph_memory *wanted)
{
    uint64_t used = attribute_of(wanted->ordinal, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
    uint64_t kept = reserved[wanted->ordinal].charged;
    uint64_t unused = used < kept ? kept - used : 0;
    return wanted->bytes > unused ? wanted->bytes - unused : 0;
}

static CUresult make_room(const struct graph_memory *wanted)
{
    if (wanted->ordinal < 0 || wanted->ordinal >= MOST)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!reserved[wanted->ordinal].known) {
        reserved[wanted->ordinal].device = device_of(wanted->ordinal);
        reserved[wanted->ordinal].charged = 0;
        reserved[wanted->ordinal].known = 1;
    }
    sync_device(wanted->ordinal);
    uint64_t more = growth(wanted);
    if (ledger_reserve(reserved[wanted->ordinal].device, more)) {
        pools_trim();
        graphs_trim();
        more = growth(wanted);
        if (ledger_reserve(reserved[wanted->ordinal].device, more))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    reserved[wanted->ordinal].charged += more;
    return CUDA_SUCCESS;
}

/* --- launching: the guard is held between `reserve` and `finish`, so that what the driver took meanwhile
 * is known to be this graph's --- */

static struct graph_memory *memory_of_executable(CUgraphExec executable)
{
    struct allocation entry;
    return allocation_find(ALLOCATION_GRAPH, (uintptr_t)executable, &entry) ? entry.owner : NULL;
}

static void sync_all(const struct graph_memory *wanted)
{
    for (; wanted; wanted = wanted->next)
        if (wanted->ordinal >= 0 && wanted->ordinal < MOST && reserved[wanted->ordinal].known)
            sync_device(wanted->ordinal);
}

static CUresult reserve(const struct graph_memory *memory)
{
    CUresult result = CUDA_SUCCESS;
    if (!memory)
        return result;
    guard_enter();
    for (const struct graph_memory *wanted = memory; wanted && !result; wanted = wanted->next)
        result = make_room(wanted);
    if (result) {
        sync_all(memory);
        guard_leave();
    }
    return result;
}

static void finish(const struct graph_memory *memory)
{
    if (!memory)
        return;
    sync_all(memory);
    guard_leave();
}

CUresult graph_launch_prepare(CUgraphExec executable)
{
    return reserve(memory_of_executable(executable));
}

void graph_launch_finish(CUgraphExec executable)
{
    finish(memory_of_executable(executable));
}

static CUresult upload(CUresult (*real)(CUgraphExec, CUstream), CUgraphExec executable, CUstream stream)
{
    CUresult result = graph_launch_prepare(executable);
    if (result)
        return result;
    result = real(executable, stream);
    graph_launch_finish(executable);
    return result;
}

WRAP(cuGraphUpload, CUgraphExec executable, CUstream stream)
{
    return upload(real_cuGraphUpload, executable, stream);
}

WRAP(cuGraphUpload_ptsz, CUgraphExec executable, CUstream stream)
{
    return upload(real_cuGraphUpload_ptsz, executable, stream);
}

/* --- executable graphs --- */

/* The driver's result of instantiating `*executable`; takes ownership of `memory`. */
static CUresult record(CUresult result, CUgraphExec *executable, struct graph_memory *memory)
{
    if (result)
        graph_memory_free(memory);
    else if (memory)
        allocation_insert(&(struct allocation){
            .kind = ALLOCATION_GRAPH, .key = (uintptr_t)*executable, .owner = memory});
    return result;
}

#define FLAG_UPLOAD 2 /* CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD */

static CUresult inspect(CUgraph graph, struct graph_memory **memory, int uploads)
{
    CUresult result = graph_memory_of(graph, memory);
    if (result || !uploads)
        return result;
    result = reserve(*memory);
    if (result)
        graph_memory_free(*memory);
    return result;
}

WRAP(cuGraphInstantiateWithFlags, CUgraphExec *executable, CUgraph graph, uint64_t flags)
{
    struct graph_memory *memory;
    CUresult result = inspect(graph, &memory, 0); /* this form cannot upload */
    if (result)
        return result;
    return record(real_cuGraphInstantiateWithFlags(executable, graph, flags), executable, memory);
}

static CUresult instantiate(CUresult (*real)(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t),
                            CUgraphExec *executable, CUgraph graph, CUgraphNode *node, char *log,
                            size_t bytes)
{
    struct graph_memory *memory;
    CUresult result = inspect(graph, &memory, 0);
    return result ? result : record(real(executable, graph, node, log, bytes), executable, memory);
}

WRAP(cuGraphInstantiate, CUgraphExec *executable, CUgraph graph, CUgraphNode *node, char *log,
     size_t bytes)
{
    return instantiate(real_cuGraphInstantiate, executable, graph, node, log, bytes);
}

WRAP(cuGraphInstantiate_v2, CUgraphExec *executable, CUgraph graph, CUgraphNode *node, char *log,
     size_t bytes)
{
    return instantiate(real_cuGraphInstantiate_v2, executable, graph, node, log, bytes);
}

/* Its parameters begin with the flags. */
static CUresult with_params(CUresult (*real)(CUgraphExec *, CUgraph, uint64_t *),
                            CUgraphExec *executable, CUgraph graph, uint64_t *params)
{
    struct graph_memory *memory;
    int uploads = params && *params & FLAG_UPLOAD;
    CUresult result = inspect(graph, &memory, uploads);
    if (result)
        return result;
    result = real(executable, graph, params);
    if (uploads)
        finish(memory);
    return record(result, executable, memory);
}

WRAP(cuGraphInstantiateWithParams, CUgraphExec *executable, CUgraph graph, uint64_t *params)
{
    return with_params(real_cuGraphInstantiateWithParams, executable, graph, params);
}

WRAP(cuGraphInstantiateWithParams_ptsz, CUgraphExec *executable, CUgraph graph, uint64_t *params)
{
    return with_params(real_cuGraphInstantiateWithParams_ptsz, executable, graph, params);
}

WRAP(cuGraphExecDestroy, CUgraphExec executable)
{
    struct allocation entry;
    int had = allocation_remove(ALLOCATION_GRAPH, (uintptr_t)executable, &entry);
    CUresult result = real_cuGraphExecDestroy(executable);
    if (had && result)
        allocation_insert(&entry);
    else if (had)
        graph_memory_free(entry.owner);
    return result;
}

EXPORT CUresult cuDeviceGraphMemTrim(CUdevice ordinal);
EXPORT CUresult cuDeviceGraphMemTrim(CUdevice ordinal)
{
    CUresult result = real_cuDeviceGraphMemTrim(ordinal);
    graphs_sync();
    return result;
}

const struct hook graph_hooks[] = {
    NEEDED(cuDeviceGetGraphMemAttribute),
    HOOK(cuGraphUpload),
    HOOK(cuGraphUpload_ptsz),
    HOOK(cuGraphInstantiateWithFlags),
    HOOK(cuGraphInstantiate),
    HOOK(cuGraphInstantiate_v2),
    HOOK(cuGraphInstantiateWithParams),
    HOOK(cuGraphInstantiateWithParams_ptsz),
    HOOK(cuGraphExecDestroy),
    HOOK(cuDeviceGraphMemTrim),
    HOOKS_END,
};
