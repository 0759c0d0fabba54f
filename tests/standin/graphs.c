/* Graphs: nodes of memory and of kernels, by hand or by capture. As in the real driver, a graph's
 * memory is taken from the GPU at its first launch and kept for the next ones, until it is trimmed. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>
#include <string.h>

#define NODES 64

struct node {
    int type;
    int gpu;
    uint64_t bytes;
    CUdeviceptr address;
    uint64_t ns;
};

struct graph {
    int count;
    struct node *nodes[NODES];
};

struct exec {
    int count;
    struct node nodes[NODES];
};

/* For each GPU: what graphs have reserved, and what of it is allocated now. */
static struct {
    uint64_t used, used_high, reserved, reserved_high;
} memory[STANDIN_GPUS];

void graphs_forget(void)
{
    memset(memory, 0, sizeof memory);
}

/* --- building -------------------------------------------------------------------------------------- */

CUgraph graph_make(void)
{
    struct graph *made = calloc(1, sizeof *made);
    if (!made)
        abort();
    return made;
}

EXPORT CUresult cuGraphCreate(CUgraph *graph, unsigned flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    *graph = graph_make();
    return need_init();
}

EXPORT CUresult cuGraphDestroy(CUgraph graph)
{
    for (int i = 0; i < graph->count; i++)
        free(graph->nodes[i]);
    free(graph);
    return CUDA_SUCCESS;
}

static CUresult add(CUgraph graph, struct node node, CUgraphNode *found)
{
    struct node *made = graph->count < NODES ? malloc(sizeof *made) : NULL;
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *made = node;
    graph->nodes[graph->count++] = made;
    if (found)
        *found = made;
    return CUDA_SUCCESS;
}

CUresult capture_alloc(CUgraph graph, int gpu, uint64_t bytes, CUdeviceptr *address)
{
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *address = address_take(bytes);
    return add(graph, (struct node){NODE_MEM_ALLOC, gpu, bytes, *address, 0}, NULL);
}

CUresult capture_free(CUgraph graph, CUdeviceptr address)
{
    return add(graph, (struct node){.type = NODE_MEM_FREE, .address = address}, NULL);
}

CUresult capture_kernel(CUgraph graph, uint64_t ns)
{
    return add(graph, (struct node){.type = NODE_KERNEL, .ns = ns}, NULL);
}

EXPORT CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                       size_t number, CUDA_MEM_ALLOC_NODE_PARAMS *wanted)
{
    (void)after, (void)number;
    if (!wanted->bytesize || !device_valid(wanted->poolProps.location.id))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&driver_lock);
    wanted->dptr = address_take(wanted->bytesize);
    pthread_mutex_unlock(&driver_lock);
    return add(graph,
               (struct node){NODE_MEM_ALLOC, device_gpu(wanted->poolProps.location.id),
                             wanted->bytesize, wanted->dptr, 0},
               node);
}

EXPORT CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                      size_t number, CUdeviceptr address)
{
    (void)after, (void)number;
    return add(graph, (struct node){.type = NODE_MEM_FREE, .address = address}, node);
}

EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                        size_t number, const CUDA_KERNEL_NODE_PARAMS *wanted)
{
    (void)after, (void)number;
    const uint64_t us = wanted->kernelParams ? *(unsigned *)wanted->kernelParams[0] : 0;
    return add(graph, (struct node){.type = NODE_KERNEL, .ns = us * 1000}, node);
}
ALIAS(cuGraphAddKernelNode, cuGraphAddKernelNode_v2);

EXPORT CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                    size_t number)
{
    (void)after, (void)number;
    return add(graph, (struct node){.type = NODE_EMPTY}, node);
}

EXPORT CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                               size_t number, CUgraphNodeParams *wanted)
{
    switch (wanted->type) {
    case NODE_KERNEL:
        return cuGraphAddKernelNode_v2(node, graph, after, number, &wanted->kernel);
    case NODE_EMPTY:
        return cuGraphAddEmptyNode(node, graph, after, number);
    case NODE_MEM_ALLOC:
        return cuGraphAddMemAllocNode(node, graph, after, number, &wanted->alloc);
    case NODE_MEM_FREE:
        return cuGraphAddMemFreeNode(node, graph, after, number, wanted->free.dptr);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

EXPORT CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                  const CUgraphEdgeData *edges, size_t number,
                                  CUgraphNodeParams *wanted)
{
    (void)edges;
    return cuGraphAddNode(node, graph, after, number, wanted);
}

EXPORT CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *number)
{
    for (size_t i = 0; nodes && i < *number && i < (size_t)graph->count; i++)
        nodes[i] = graph->nodes[i];
    *number = (size_t)graph->count;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphNodeGetType(CUgraphNode node, int *type)
{
    *type = node->type;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *found)
{
    if (node->type != NODE_MEM_ALLOC)
        return CUDA_ERROR_INVALID_VALUE;
    memset(found, 0, sizeof *found);
    found->poolProps.location = (CUmemLocation){LOCATION_DEVICE, 0};
    for (int i = 0; i < device_count(); i++)
        if (device_gpu(i) == node->gpu)
            found->poolProps.location.id = i;
    found->bytesize = node->bytes;
    found->dptr = node->address;
    return CUDA_SUCCESS;
}

/* --- instances ------------------------------------------------------------------------------------- */

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                            unsigned long long flags)
{
    (void)flags;
    struct exec *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (made->count = 0; made->count < graph->count; made->count++)
        made->nodes[made->count] = *graph->nodes[made->count];
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
    wanted->result_out = 0;
    return cuGraphInstantiateWithFlags(exec, graph, wanted->flags);
}
PTSZ(cuGraphInstantiateWithParams);

EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec)
{
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

EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    struct context *context;
    CUresult result = need_context(&context);
    pthread_mutex_lock(&driver_lock);
    for (int i = 0; !result && i < exec->count; i++) {
        const struct node *node = &exec->nodes[i];
        if (node->type == NODE_KERNEL)
            stream_run(stream, context, node->ns);
        else if (node->type != NODE_EMPTY)
            result = run_memory_node(node);
    }
    pthread_mutex_unlock(&driver_lock);
    return result;
}
PTSZ(cuGraphLaunch);

EXPORT CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
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
