/* Instances of graphs. As in the real driver, a graph's memory is taken from the GPU at its first launch
 * and kept for the next ones, until it is trimmed. */
#define _GNU_SOURCE
#include "graph.h"

#include <stdlib.h>
#include <string.h>

struct exec {
    int count;
    struct node nodes[GRAPH_NODES];
};

/* For each GPU: what graphs have reserved, and what of it is allocated now. */
static struct {
    uint64_t used, used_high, reserved, reserved_high;
} memory[STANDIN_GPUS];

void graphs_forget(void)
{
    memset(memory, 0, sizeof memory);
}

/* --- instances ------------------------------------------------------------------------------------- */

static bool flatten(struct exec *exec, CUgraph graph)
{
    for (int i = 0; i < graph->count; i++) {
        const struct node *node = graph->nodes[i];
        if (node->type == NODE_GRAPH) {
            if (!flatten(exec, node->graph))
                return false;
        } else if (exec->count == GRAPH_NODES) {
            return false;
        } else {
            exec->nodes[exec->count++] = *node;
        }
    }
    return true;
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                            unsigned long long flags)
{
    if (!exec || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    (void)flags;
    struct exec *made = calloc(1, sizeof *made);
    if (!made || !flatten(made, graph)) {
        free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *exec = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error,
                                      char *log, size_t bytes)
{
    (void)error, (void)log, (void)bytes;
    return cuGraphInstantiateWithFlags(exec, graph, 0);
}
ALIAS(cuGraphInstantiate, cuGraphInstantiate_v2);

EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                             CUDA_GRAPH_INSTANTIATE_PARAMS *wanted)
{
    if (!wanted)
        return CUDA_ERROR_INVALID_VALUE;
    wanted->result_out = 0;
    return cuGraphInstantiateWithFlags(exec, graph, wanted->flags);
}
PTSZ(cuGraphInstantiateWithParams);

EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    free(exec);
    return CUDA_SUCCESS;
}

/* --- running --------------------------------------------------------------------------------------- */

static CUresult take(int gpu, uint64_t bytes)
{
    const uint64_t unused = memory[gpu].reserved - memory[gpu].used;
    const uint64_t more = bytes > unused ? bytes - unused : 0;
    CUresult result = charge(gpu, more);
    if (result)
        return result;
    memory[gpu].reserved += more;
    memory[gpu].used += bytes;
    if (memory[gpu].reserved > memory[gpu].reserved_high)
        memory[gpu].reserved_high = memory[gpu].reserved;
    if (memory[gpu].used > memory[gpu].used_high)
        memory[gpu].used_high = memory[gpu].used;
    return CUDA_SUCCESS;
}

void graph_memory_free(struct allocation *allocation)
{
    memory[allocation->gpu].used -= allocation->bytes;
}

static bool is_memory(const struct node *node)
{
    return node->type == NODE_MEM_ALLOC || node->type == NODE_MEM_FREE;
}

static CUresult run_memory_node(const struct node *node)
{
    if (node->type == NODE_MEM_FREE)
        return allocation_free(node->address);
    struct allocation *before = allocation_find(node->address);
    if (before) /* the last launch's was never freed: a real driver refuses, unless by a flag */
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = take(node->gpu, node->bytes);
    if (!result)
        allocation_add(GRAPH, node->gpu, node->address, node->bytes);
    return result;
}

/* A launch that has no memory for one of its nodes takes none for any. */
static void undo(CUgraphExec exec, int nodes)
{
    for (int i = 0; i < nodes; i++)
        if (exec->nodes[i].type == NODE_MEM_ALLOC)
            allocation_free(exec->nodes[i].address); /* it may have been freed by the graph */
}

EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    struct context *context;
    CUresult result = need_context(&context);
    pthread_mutex_lock(&driver_lock);
    for (int i = 0; !result && i < exec->count; i++) {
        if (is_memory(&exec->nodes[i]))
            result = run_memory_node(&exec->nodes[i]);
        if (result == CUDA_ERROR_OUT_OF_MEMORY)
            undo(exec, i);
    }
    pthread_mutex_unlock(&driver_lock);
    for (int i = 0; !result && i < exec->count; i++)
        if (exec->nodes[i].type == NODE_KERNEL)
            result = stream_run(stream, exec->nodes[i].ns, exec->nodes[i].blocks);
    return result;
}
PTSZ_OF(cuGraphLaunch, (CUgraphExec exec, CUstream stream), (exec, per_thread(stream)))

EXPORT CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    (void)exec, (void)stream;
    return need_init();
}
PTSZ(cuGraphUpload);

/* --- the memory that graphs keep ------------------------------------------------------------------- */

EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device)
{
    if (!device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    const int gpu = device_gpu(device);
    pthread_mutex_lock(&driver_lock);
    discharge(gpu, memory[gpu].reserved - memory[gpu].used);
    memory[gpu].reserved = memory[gpu].used;
    pthread_mutex_unlock(&driver_lock);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *value)
{
    if (!device_valid(device))
        return CUDA_ERROR_INVALID_DEVICE;
    const int gpu = device_gpu(device);
    const uint64_t values[] = {memory[gpu].used, memory[gpu].used_high, memory[gpu].reserved,
                               memory[gpu].reserved_high};
    if (attribute < 0 || attribute > GRAPH_RESERVED_HIGH)
        return CUDA_ERROR_INVALID_VALUE;
    *(uint64_t *)value = values[attribute];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceSetGraphMemAttribute(CUdevice device, int attribute, void *value)
{
    if (!device_valid(device) || *(uint64_t *)value)
        return CUDA_ERROR_INVALID_VALUE;
    const int gpu = device_gpu(device);
    if (attribute == GRAPH_USED_HIGH)
        memory[gpu].used_high = memory[gpu].used;
    else if (attribute == GRAPH_RESERVED_HIGH)
        memory[gpu].reserved_high = memory[gpu].reserved;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}
