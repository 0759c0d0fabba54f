/* How much memory a graph allocates. Its nodes are looked up when it is made executable, so that it is the
 * same however they came into it: by hand, by capture, by a graph within. */
#include "cuda_needs.h"

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
    int failed; /* no memory to look into it */
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

static void look_into_graph(struct ranges *ranges, CUgraph graph);

static void look_into_node(struct ranges *ranges, CUgraphNode node)
{
    int type;
    CUgraph child;
    union { /* a newer driver may know more of it */
        CUDA_MEM_ALLOC_NODE_PARAMS known;
        unsigned char room[512];
    } params;
    if (real_cuGraphNodeGetType(node, &type))
        return;
    if (type == CU_GRAPH_NODE_TYPE_GRAPH && !real_cuGraphChildGraphNodeGetGraph(node, &child))
        look_into_graph(ranges, child);
    if (type != CU_GRAPH_NODE_TYPE_MEM_ALLOC || real_cuGraphMemAllocNodeGetParams(node, &params.known))
        return;
    if (params.known.poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        range_add(ranges, (struct range){.ordinal = params.known.poolProps.location.id,
                                         .start = params.known.dptr,
                                         .end = params.known.dptr + params.known.bytesize});
}

static void look_into_graph(struct ranges *ranges, CUgraph graph)
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
            look_into_node(ranges, nodes[at]);
    free(nodes);
}

static int by_start(const void *one, const void *other)
{
    const struct range *first = one, *second = other;
    if (first->ordinal != second->ordinal)
        return first->ordinal < second->ordinal ? -1 : 1;
    return first->start < second->start ? -1 : first->start > second->start;
}

static struct need *need_of(struct need **needs, CUdevice ordinal)
{
    struct need *need = *needs;
    if (need && need->ordinal == ordinal)
        return need;
    need = calloc(1, sizeof *need);
    if (!need)
        return NULL;
    need->ordinal = ordinal;
    need->next = *needs;
    return *needs = need;
}

/* Nodes that are never in use together are given the same addresses: those count once. */
static int add_up(struct ranges *ranges, struct need **needs)
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
        struct need *need = need_of(needs, range->ordinal);
        if (!need)
            return -1;
        need->bytes += range->end - start;
        end = range->end;
    }
    return 0;
}

void needs_free(struct need *need)
{
    while (need) {
        struct need *next = need->next;
        free(need);
        need = next;
    }
}

CUresult needs_of(CUgraph graph, struct need **needs)
{
    struct ranges ranges = {0};
    *needs = NULL;
    look_into_graph(&ranges, graph);
    int failed = ranges.failed || (ranges.count && add_up(&ranges, needs));
    free(ranges.list);
    if (failed)
        needs_free(*needs);
    return failed ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

const struct hook need_hooks[] = {
    NEEDED(cuGraphGetNodes),
    NEEDED(cuGraphNodeGetType),
    NEEDED(cuGraphMemAllocNodeGetParams),
    NEEDED(cuGraphChildGraphNodeGetGraph),
    HOOKS_END,
};
