/* Graphs: nodes of memory, of kernels and of graphs in them, by hand or by capture. */
#define _GNU_SOURCE
#include "graph.h"

#include <stdlib.h>
#include <string.h>

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
    struct node *made = graph->count < GRAPH_NODES ? malloc(sizeof *made) : NULL;
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
    return add(graph, (struct node){.type = NODE_MEM_ALLOC, .gpu = gpu, .bytes = bytes, .address = *address}, NULL);
}

CUresult capture_free(CUgraph graph, CUdeviceptr address)
{
    return add(graph, (struct node){.type = NODE_MEM_FREE, .address = address}, NULL);
}

CUresult capture_kernel(CUgraph graph, uint64_t ns, uint64_t blocks)
{
    return add(graph, (struct node){.type = NODE_KERNEL, .ns = ns, .blocks = blocks}, NULL);
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
               (struct node){.type = NODE_MEM_ALLOC,
                             .gpu = device_gpu(wanted->poolProps.location.id),
                             .bytes = wanted->bytesize,
                             .address = wanted->dptr},
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
    return add(graph, (struct node){.type = NODE_KERNEL, .ns = us * 1000,
                                     .blocks = (uint64_t)wanted->gridDimX * wanted->gridDimY *
                                               wanted->gridDimZ}, node);
}
ALIAS(cuGraphAddKernelNode, cuGraphAddKernelNode_v2);

EXPORT CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                    size_t number)
{
    (void)after, (void)number;
    return add(graph, (struct node){.type = NODE_EMPTY}, node);
}

/* The graph is copied, so it may be changed or destroyed afterwards. */
EXPORT CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                         size_t number, CUgraph child)
{
    CUresult result = CUDA_SUCCESS;
    CUgraph copy = graph_make();
    (void)after, (void)number;
    for (int i = 0; !result && i < child->count; i++)
        result = add(copy, *child->nodes[i], NULL);
    return result ? result : add(graph, (struct node){.type = NODE_GRAPH, .graph = copy}, node);
}

EXPORT CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph)
{
    if (node->type != NODE_GRAPH)
        return CUDA_ERROR_INVALID_VALUE;
    *graph = node->graph;
    return CUDA_SUCCESS;
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
