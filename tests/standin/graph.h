/* What building a graph and running it share. */
#ifndef STANDIN_GRAPH_H
#define STANDIN_GRAPH_H

#include "driver.h"

#define GRAPH_NODES 64

struct node {
    int type;
    int gpu;
    uint64_t bytes;
    CUdeviceptr address;
    uint64_t ns, blocks;
    CUgraph graph;
};

struct graph {
    int count;
    struct node *nodes[GRAPH_NODES];
};

#endif
