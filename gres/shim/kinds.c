#include "kinds.h"

/* Sets of four, so that two kinds that fall into the same set do not replace each other all the time. 1024
 * sets have room for the few hundred functions of a framework at about ten sizes each. */
#define SETS_BITS 10
#define PLACES 4
#define ANY_SIZE 0

/* A function at one order of magnitude of its grid. Durations grow with the number of blocks only once the GPU
 * is full, so an estimate per block is good near the size at which it was measured. For other sizes the duration of
 * the last measurement stands in, until they have been measured as well. */
static struct kind {
    uintptr_t function;
    uint32_t size; /* 1 + log2 of the number of blocks, or ANY_SIZE */
    float per_block; /* ns, or with ANY_SIZE of the whole; -1: not known */
} kinds[(1 << SETS_BITS) * PLACES];

static struct kind *kinds_find(uintptr_t function, uint32_t size)
{
    const uint64_t hash = ((uint64_t)function + size) * UINT64_C(0x9E3779B97F4A7C15);
    struct kind *first = &kinds[(hash >> (64 - SETS_BITS)) * PLACES];
    struct kind *kind = first;
    while (kind < first + PLACES && kind->function && (kind->function != function || kind->size != size))
        kind++;
    if (kind == first + PLACES)
        kind = first + (hash >> 8) % PLACES; /* the set is full: an old kind is replaced */
    if (kind->function != function || kind->size != size)
        *kind = (struct kind){.function = function, .size = size, .per_block = -1};
    return kind;
}

static uint32_t kinds_size(uint32_t blocks)
{
    return 1 + 31 - (uint32_t)__builtin_clz(blocks | 1);
}

static int64_t kinds_duration(const struct kind *kind, uint32_t blocks)
{
    return (int64_t)((double)kind->per_block * (blocks ? blocks : 1));
}

struct expected kinds_expect(const struct work *work)
{
    const struct kind *kind = kinds_find(work->function, kinds_size(work->blocks));
    if (kind->per_block >= 0)
        return (struct expected){.ns = kinds_duration(kind, work->blocks)};
    kind = kinds_find(work->function, ANY_SIZE);
    return (struct expected){.ns = kind->per_block < 0 ? -1 : kinds_duration(kind, 1), .sample = 1};
}

/* A moving average: with samples that are chosen at random its mean is that of all launches, whatever rhythm
 * the long ones among them have. */
static void kinds_average(struct kind *kind, float per_block)
{
    kind->per_block += kind->per_block < 0 ? per_block - kind->per_block : (per_block - kind->per_block) / 4;
}

void kinds_learn(const struct work *work, int64_t ns)
{
    const float per_block = (float)ns / (float)(work->blocks ? work->blocks : 1);
    kinds_average(kinds_find(work->function, kinds_size(work->blocks)), per_block);
    kinds_find(work->function, ANY_SIZE)->per_block = (float)ns;
}
