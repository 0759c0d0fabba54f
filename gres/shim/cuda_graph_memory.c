/* How much memory a graph allocates. Its nodes are inspected when it is instantiated, however they were
 * added: explicitly, by capture, or as a child graph. */
#include "cuda_graph_memory.h"

#include <stdlib.h>

NEEDS(cuGraphGetNodes, CUgraph, CUgraphNode *, size_t *);
NEEDS(cuGraphNodeGetType, CUgraphNode, int *);
NEEDS(cuGraphMemAllocNodeGetParams, CUgraphNode, CUDA_MEM_ALLOC_NODE_PARAMS *);
NEEDS(cuGraphChildGraphNodeGetGraph, CUgraphNode, CUgraph *);

struct range {
    CUdevice ordinal;
    uint64_t start, end;
};

struct ranges {
    size_t count, room;
    struct range *list;
    int failed; /* no host memory to inspect the graph */
};

static void range_add(struct ranges *ranges, struct range range)
{
    if (ranges->count == ranges->room) {
        size_t room = ranges->room ? ranges->room * 2 : 16;
        struct range *list = realloc(ranges->list, room * sizeof *list);
        ranges->failed |= !list;
        if (!list)
            return;
        ranges->list = list;
        ranges->room = room;
    }
    ranges->list[ranges->count++] = range;
}

static void inspect_graph(struct ranges *ranges, CUgraph graph);

static void inspect_node(struct ranges *ranges, CUgraphNode node)
{
    int type;
    CUgraph child;
    union { /* a newer driver may write more */
        CUDA_MEM_ALLOC_NODE_PARAMS known;
        unsigned char room[512];
    } params;
    if (real_cuGraphNodeGetType(node, &type))
        return;
    if (type == CU_GRAPH_NODE_TYPE_GRAPH && !real_cuGraphChildGraphNodeGetGraph(node, &child))
        inspect_graph(ranges, child);
    if (type != CU_GRAPH_NODE_TYPE_MEM_ALLOC || real_cuGraphMemAllocNodeGetParams(node, &params.known))
        return;
    if (params.known.poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        range_add(ranges, (struct range){.ordinal = params.known.poolProps.location.id,
                                         .start = params.known.dptr,
                                         .end = params.known.dptr + params.known.bytesize});
}

static void inspect_graph(struct ranges *ranges, CUgraph graph)
{
    size_t count = 0;
    if (real_cuGraphGetNodes(graph, NULL, &count) || !count)
        return;
    CUgraphNode *nodes = calloc(count, sizeof *nodes);
    ranges->failed |= !nodes;
    if (!nodes)
        return;
    if (!real_cuGraphGetNodes(graph, nodes, &count))
        for (size_t at = 0; at < count; at++)
            inspect_node(ranges, nodes[at]);
    free(nodes);
}

static int by_start(const void *one, const void *other)
{
    const struct range *first = one, *second = other;
    if (first->ordinal != second->ordinal)
        return first->ordinal < second->ordinal ? -1 : 1;
    return first->start < second->start ? -1 : first->start > second->start;
}

/* The entry of a GPU, which is the first one of the list or a new one: ranges come sorted by GPU. */
static struct graph_memory *entry_of(struct graph_memory **list, CUdevice ordinal)
{
    struct graph_memory *entry = *list;
    if (entry && entry->ordinal == ordinal)
        return entry;
    entry = calloc(1, sizeof *entry);
    if (!entry)
        return NULL;
    entry->ordinal = ordinal;
    entry->next = *list;
    return *list = entry;
}

/* Nodes that are never in use at the same time share addresses, which count once. */
static int add_up(struct ranges *ranges, struct graph_memory **list)
{
    uint64_t end = 0;
    qsort(ranges->list, ranges->count, sizeof *ranges->list, by_start);
    for (size_t at = 0; at < ranges->count; at++) {
        const struct range *range = &ranges->list[at];
        if (!at || range->ordinal != range[-1].ordinal)
            end = 0;
        uint64_t start = range->start > end ? range->start : end;
        if (range->end <= start)
            continue;
        struct graph_memory *entry = entry_of(list, range->ordinal);
        if (!entry)
            return -1;
        entry->bytes += range->end - start;
        end = range->end;
    }
    return 0;
}

void graph_memory_free(struct graph_memory *list)
{
    while (list) {
        struct graph_memory *next = list->next;
        free(list);
        list = next;
    }
}

CUresult graph_memory_of(CUgraph graph, struct graph_memory **list)
{
    struct ranges ranges = {0};
    *list = NULL;
    if (!graph) /* the driver returns the error */
        return CUDA_SUCCESS;
    inspect_graph(&ranges, graph);
    int failed = ranges.failed || (ranges.count && add_up(&ranges, list));
    free(ranges.list);
    if (failed)
        graph_memory_free(*list);
    return failed ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

const struct hook graph_memory_hooks[] = {
    NEEDED(cuGraphGetNodes),
    NEEDED(cuGraphNodeGetType),
    NEEDED(cuGraphMemAllocNodeGetParams),
    NEEDED(cuGraphChildGraphNodeGetGraph),
    HOOKS_END,
};
