/* Memory that graphs allocate: the driver takes it from the GPU when a graph is uploaded or launched, and
 * keeps it for the next launch of any graph. */
#include "cuda_graphs.h"

#include "cuda_allocations.h"
#include "cuda_device.h"
#include "cuda_graph_memory.h"
#include "cuda_guard.h"
#include "cuda_pools.h"
#include "ledger.h"
#include "trace.h"

#include <time.h>

#define MOST 64 /* GPUs of one machine */
#define GRAPH_PAUSE INT64_C(100000)       /* ns between two tries */
#define GRAPH_PATIENCE INT64_C(1000000000) /* ns at most */

static struct {
    int known; /* a graph with memory on it has been seen */
    int device;
    uint64_t charged;
    uint64_t coming; /* bytes of launches on their way, which the driver may or may not count already */
} reserved[MOST];

NEEDS(cuDeviceGetGraphMemAttribute, CUdevice, int, uint64_t *);
NEEDS(cuDeviceGraphMemTrim, CUdevice);

/* --- what the driver keeps for graphs; with the guard entered --- */

static uint64_t graph_attribute(CUdevice ordinal, int attribute)
{
    uint64_t value;
    if (real_cuDeviceGetGraphMemAttribute(ordinal, attribute, &value))
        return reserved[ordinal].charged;
    return value;
}

/* What may be in use when all launches that are on their way have taken theirs. */
static uint64_t graph_use(CUdevice ordinal)
{
    return graph_attribute(ordinal, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) + reserved[ordinal].coming;
}

static void graph_sync(CUdevice ordinal)
{
    const uint64_t charged = reserved[ordinal].charged;
    uint64_t now = graph_attribute(ordinal, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
    if (now < charged && reserved[ordinal].coming) {
        const uint64_t use = graph_use(ordinal);
        now = use < charged ? (use > now ? use : now) : charged;
    }
    if (now > charged)
        ledger_charge(reserved[ordinal].device, now - charged);
    else
        ledger_release(reserved[ordinal].device, charged - now);
    reserved[ordinal].charged = now;
}

void graphs_sync(void)
{
    guard_enter();
    for (CUdevice ordinal = 0; ordinal < MOST; ordinal++)
        if (reserved[ordinal].known)
            graph_sync(ordinal);
    guard_leave();
}

void graphs_trim(void)
{
    guard_enter();
    for (CUdevice ordinal = 0; ordinal < MOST; ordinal++)
        if (reserved[ordinal].known && !real_cuDeviceGraphMemTrim(ordinal))
            graph_sync(ordinal);
    guard_leave();
}

void graphs_forget(void)
{
    for (CUdevice ordinal = 0; ordinal < MOST; ordinal++)
        reserved[ordinal].known = 0;
}

static uint64_t graph_growth(const struct graph_memory *wanted)
{
    const uint64_t needed = graph_use(wanted->ordinal) + wanted->bytes;
    const uint64_t charged = reserved[wanted->ordinal].charged;
    return needed > charged ? needed - charged : 0;
}

static void graph_device_begin(CUdevice ordinal)
{
    if (reserved[ordinal].known)
        return;
    reserved[ordinal].device = device_of(ordinal);
    reserved[ordinal].charged = reserved[ordinal].coming = 0;
    reserved[ordinal].known = 1;
}

static CUresult graph_reserve_one(const struct graph_memory *wanted)
{
    if (wanted->ordinal < 0 || wanted->ordinal >= MOST)
        return CUDA_ERROR_OUT_OF_MEMORY;
    graph_device_begin(wanted->ordinal);
    graph_sync(wanted->ordinal);
    uint64_t more = graph_growth(wanted);
    if (ledger_reserve(reserved[wanted->ordinal].device, more)) {
        pools_trim();
        graphs_trim();
        more = graph_growth(wanted);
        if (ledger_reserve(reserved[wanted->ordinal].device, more))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    reserved[wanted->ordinal].charged += more;
    reserved[wanted->ordinal].coming += wanted->bytes;
    return CUDA_SUCCESS;
}

/* --- launching: reserve, call without the guard, correct by what the driver has taken --- */

/* Ends what graph_reserve_one() has begun for the entries before `end`. */
static void graph_settle_until(const struct graph_memory *memory, const struct graph_memory *end)
{
    for (; memory != end; memory = memory->next) {
        reserved[memory->ordinal].coming -= memory->bytes;
        graph_sync(memory->ordinal);
    }
}

static void graph_settle(const struct graph_memory *memory)
{
    guard_enter();
    graph_settle_until(memory, NULL);
    guard_leave();
}

/* All of the graph's GPUs, or none. */
static CUresult graph_try_reserve(const struct graph_memory *memory)
{
    CUresult result = CUDA_SUCCESS;
    const struct graph_memory *wanted = memory;
    while (wanted && !(result = graph_reserve_one(wanted)))
        wanted = wanted->next;
    if (result)
        graph_settle_until(memory, wanted);
    return result;
}

static int graph_others_are_coming(const struct graph_memory *memory)
{
    for (; memory; memory = memory->next)
        if (memory->ordinal >= 0 && memory->ordinal < MOST && reserved[memory->ordinal].coming)
            return 1;
    return 0;
}

/* As for pools (cuda_async.c): other threads' launches are counted in full, so they are waited for before the
 * slice refuses. */
static CUresult graph_reserve(const char *function, const struct graph_memory *memory)
{
    const struct timespec pause = {0, GRAPH_PAUSE};
    guard_enter();
    CUresult result = graph_try_reserve(memory);
    for (int64_t waited = 0; result && graph_others_are_coming(memory) && waited < GRAPH_PATIENCE;
         waited += GRAPH_PAUSE) {
        guard_leave();
        nanosleep(&pause, NULL);
        guard_enter();
        result = graph_try_reserve(memory);
    }
    guard_leave();
    if (result)
        trace_refused(function, memory->bytes);
    return result;
}

/* The graph's memory, kept until graph_memory_free() even if the executable is destroyed meanwhile. */
static struct graph_memory *graph_memory_keep(CUgraphExec executable)
{
    struct allocation entry;
    guard_enter();
    struct graph_memory *memory =
        allocation_find(ALLOCATION_GRAPH, (uintptr_t)executable, &entry) ? entry.owner : NULL;
    if (memory)
        memory->users++;
    guard_leave();
    return memory;
}

static void graph_memory_drop(struct graph_memory *memory)
{
    guard_enter();
    if (memory && !--memory->users)
        graph_memory_free(memory);
    guard_leave();
}

CUresult graph_launch(const char *function, CUresult (*real)(CUgraphExec, CUstream),
                      CUgraphExec executable, CUstream stream)
{
    struct graph_memory *memory = graph_memory_keep(executable);
    if (!memory)
        return real(executable, stream);
    CUresult result = graph_reserve(function, memory);
    if (!result) {
        result = real(executable, stream);
        graph_settle(memory);
    }
    graph_memory_drop(memory);
    return result;
}

WRAP(cuGraphUpload, CUgraphExec executable, CUstream stream)
{
    return graph_launch(__func__, real_cuGraphUpload, executable, stream);
}

WRAP(cuGraphUpload_ptsz, CUgraphExec executable, CUstream stream)
{
    return graph_launch(__func__, real_cuGraphUpload_ptsz, executable, stream);
}

/* --- executable graphs --- */

/* The driver's result of instantiating `*executable`; takes ownership of `memory`. */
static CUresult graph_record(CUresult result, const CUgraphExec *executable, struct graph_memory *memory)
{
    if (!memory)
        return result;
    memory->users = 1;
    if (result || !executable)
        graph_memory_drop(memory);
    else
        allocation_insert(&(struct allocation){
            .kind = ALLOCATION_GRAPH, .key = (uintptr_t)*executable, .owner = memory});
    return result;
}

#define FLAG_UPLOAD 2 /* CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD */

WRAP(cuGraphInstantiateWithFlags, CUgraphExec *executable, CUgraph graph, uint64_t flags)
{
    struct graph_memory *memory;
    CUresult result = graph_memory_of(graph, &memory); /* this form cannot upload */
    if (result)
        return result;
    return graph_record(real_cuGraphInstantiateWithFlags(executable, graph, flags), executable, memory);
}

static CUresult graph_instantiate(CUresult (*real)(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t),
                                  CUgraphExec *executable, CUgraph graph, CUgraphNode *node, char *log,
                                  size_t bytes)
{
    struct graph_memory *memory;
    CUresult result = graph_memory_of(graph, &memory);
    if (result)
        return result;
    return graph_record(real(executable, graph, node, log, bytes), executable, memory);
}

WRAP(cuGraphInstantiate, CUgraphExec *executable, CUgraph graph, CUgraphNode *node, char *log,
     size_t bytes)
{
    return graph_instantiate(real_cuGraphInstantiate, executable, graph, node, log, bytes);
}

WRAP(cuGraphInstantiate_v2, CUgraphExec *executable, CUgraph graph, CUgraphNode *node, char *log,
     size_t bytes)
{
    return graph_instantiate(real_cuGraphInstantiate_v2, executable, graph, node, log, bytes);
}

/* Its parameters begin with the flags. With an upload the memory is taken at once. */
static CUresult graph_instantiate_by(const char *function,
                                     CUresult (*real)(CUgraphExec *, CUgraph, uint64_t *),
                                     CUgraphExec *executable, CUgraph graph, uint64_t *params)
{
    struct graph_memory *memory;
    const int uploads = params && *params & FLAG_UPLOAD;
    CUresult result = graph_memory_of(graph, &memory);
    if (result)
        return result;
    if (uploads && memory)
        result = graph_reserve(function, memory);
    if (result) {
        graph_memory_free(memory);
        return result;
    }
    result = real(executable, graph, params);
    if (uploads && memory)
        graph_settle(memory);
    return graph_record(result, executable, memory);
}

WRAP(cuGraphInstantiateWithParams, CUgraphExec *executable, CUgraph graph, uint64_t *params)
{
    return graph_instantiate_by(__func__, real_cuGraphInstantiateWithParams, executable, graph, params);
}

WRAP(cuGraphInstantiateWithParams_ptsz, CUgraphExec *executable, CUgraph graph, uint64_t *params)
{
    return graph_instantiate_by(__func__, real_cuGraphInstantiateWithParams_ptsz, executable, graph,
                                params);
}

WRAP(cuGraphExecDestroy, CUgraphExec executable)
{
    struct allocation entry;
    int had = allocation_remove(ALLOCATION_GRAPH, (uintptr_t)executable, &entry);
    CUresult result = real_cuGraphExecDestroy(executable);
    if (had && result)
        allocation_insert(&entry);
    else if (had)
        graph_memory_drop(entry.owner);
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
