/* Memory that graphs allocate: the driver takes it from the GPU when a graph is uploaded or launched, and
 * keeps it for the next launch of any graph. */
#include "cuda_needs.h"

#define MOST 64 /* GPUs of one machine */

static struct {
    int known; /* a graph with memory there has been seen */
    int device;
    uint64_t charged;
} memory[MOST];

NEEDS(cuDeviceGetGraphMemAttribute, CUdevice, int, uint64_t *);
NEEDS(cuDeviceGraphMemTrim, CUdevice);

/* --- what the driver keeps for graphs; with the guard entered --- */

static uint64_t figure(CUdevice ordinal, int attribute)
{
    uint64_t value;
    if (real_cuDeviceGetGraphMemAttribute(ordinal, attribute, &value))
        return memory[ordinal].charged;
    return value;
}

static void settle(CUdevice ordinal)
{
    uint64_t now = figure(ordinal, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
    if (now > memory[ordinal].charged)
        ledger_charge(memory[ordinal].device, now - memory[ordinal].charged);
    else
        ledger_release(memory[ordinal].device, memory[ordinal].charged - now);
    memory[ordinal].charged = now;
}

void graphs_settle(void)
{
    guard_enter();
    for (CUdevice ordinal = 0; ordinal < MOST; ordinal++)
        if (memory[ordinal].known)
            settle(ordinal);
    guard_leave();
}

void graphs_trim(void)
{
    guard_enter();
    for (CUdevice ordinal = 0; ordinal < MOST; ordinal++)
        if (memory[ordinal].known && !real_cuDeviceGraphMemTrim(ordinal))
            settle(ordinal);
    guard_leave();
}

void graphs_forget(void)
{
    for (CUdevice ordinal = 0; ordinal < MOST; ordinal++)
        memory[ordinal].known = 0;
}

static uint64_t growth(const struct need *need)
{
    uint64_t used = figure(need->ordinal, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
    uint64_t kept = memory[need->ordinal].charged;
    uint64_t unused = used < kept ? kept - used : 0;
    return need->bytes > unused ? need->bytes - unused : 0;
}

static CUresult make_room(const struct need *need)
{
    if (need->ordinal < 0 || need->ordinal >= MOST)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!memory[need->ordinal].known) {
        memory[need->ordinal].device = device_of(need->ordinal);
        memory[need->ordinal].charged = 0;
        memory[need->ordinal].known = 1;
    }
    settle(need->ordinal);
    uint64_t more = growth(need);
    if (ledger_reserve(memory[need->ordinal].device, more)) {
        pools_trim();
        graphs_trim();
        more = growth(need);
        if (ledger_reserve(memory[need->ordinal].device, more))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memory[need->ordinal].charged += more;
    return CUDA_SUCCESS;
}

/* --- launching --- */

static struct need *needs_of_executable(void *executable)
{
    struct held entry;
    return held_look(HELD_GRAPH, (uintptr_t)executable, &entry) ? entry.owner : NULL;
}

static void settle_all(const struct need *need)
{
    for (; need; need = need->next)
        if (need->ordinal >= 0 && need->ordinal < MOST && memory[need->ordinal].known)
            settle(need->ordinal);
}

static CUresult before(const struct need *needs)
{
    CUresult answer = CUDA_SUCCESS;
    if (!needs)
        return answer;
    guard_enter();
    for (const struct need *need = needs; need && !answer; need = need->next)
        answer = make_room(need);
    if (!answer)
        return answer;
    settle_all(needs);
    guard_leave();
    return answer;
}

static void after(const struct need *needs)
{
    if (!needs)
        return;
    settle_all(needs);
    guard_leave();
}

int graph_memory_before(void *executable)
{
    return before(needs_of_executable(executable));
}

void graph_memory_after(void *executable)
{
    after(needs_of_executable(executable));
}

static CUresult upload(CUresult (*real)(CUgraphExec, CUstream), CUgraphExec executable, CUstream stream)
{
    CUresult answer = graph_memory_before(executable);
    if (answer)
        return answer;
    answer = real(executable, stream);
    graph_memory_after(executable);
    return answer;
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

/* The driver's answer to making `*executable`; the needs are the record's from here on. */
static CUresult made(CUresult answer, CUgraphExec *executable, struct need *needs)
{
    if (answer)
        needs_free(needs);
    else if (needs)
        held_add(&(struct held){
            .kind = HELD_GRAPH, .key = (uintptr_t)*executable, .owner = needs});
    return answer;
}

#define FLAG_UPLOAD 2 /* CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD */

static CUresult make(CUgraph graph, struct need **needs, int uploads)
{
    CUresult answer = needs_of(graph, needs);
    if (answer || !uploads)
        return answer;
    answer = before(*needs);
    if (answer)
        needs_free(*needs);
    return answer;
}

WRAP(cuGraphInstantiateWithFlags, CUgraphExec *executable, CUgraph graph, uint64_t flags)
{
    struct need *needs;
    CUresult answer = make(graph, &needs, 0); /* this form cannot upload */
    if (answer)
        return answer;
    return made(real_cuGraphInstantiateWithFlags(executable, graph, flags), executable, needs);
}

static CUresult instantiate(CUresult (*real)(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t),
                            CUgraphExec *executable, CUgraph graph, CUgraphNode *node, char *log,
                            size_t bytes)
{
    struct need *needs;
    CUresult answer = make(graph, &needs, 0);
    return answer ? answer : made(real(executable, graph, node, log, bytes), executable, needs);
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
    struct need *needs;
    int uploads = params && *params & FLAG_UPLOAD;
    CUresult answer = make(graph, &needs, uploads);
    if (answer)
        return answer;
    answer = real(executable, graph, params);
    if (uploads)
        after(needs);
    return made(answer, executable, needs);
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
    struct held entry;
    int had = held_take(HELD_GRAPH, (uintptr_t)executable, &entry);
    CUresult answer = real_cuGraphExecDestroy(executable);
    if (had && answer)
        held_add(&entry);
    else if (had)
        needs_free(entry.owner);
    return answer;
}

EXPORT CUresult cuDeviceGraphMemTrim(CUdevice ordinal);
EXPORT CUresult cuDeviceGraphMemTrim(CUdevice ordinal)
{
    CUresult answer = real_cuDeviceGraphMemTrim(ordinal);
    graphs_settle();
    return answer;
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
