/* How much memory a graph allocates. */
#ifndef SLIPWAY_CUDA_GRAPH_MEMORY_H
#define SLIPWAY_CUDA_GRAPH_MEMORY_H

#include "cuda_wrap.h"

/* What one executable graph allocates on one GPU. */
struct graph_memory {
    struct graph_memory *next;
    CUdevice ordinal;
    uint64_t bytes;
    unsigned int users; /* of the list, in its first entry: the executable graph, and launches on their way */
};

/* A list, NULL for nothing; CUDA_ERROR_OUT_OF_MEMORY when there is no host memory to inspect the graph. */
CUresult graph_memory_of(CUgraph graph, struct graph_memory **list);
void graph_memory_free(struct graph_memory *list);

extern const struct hook graph_memory_hooks[];

#endif
