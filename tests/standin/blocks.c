/* How the GPU's memory is handed out for linear memory and arrays, as measured on real drivers: what is
 * larger than 1 MiB has blocks of 2 MiB of its own; smaller pieces share blocks, in which they are as large
 * as the next power of two. A block is given back with its last piece. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>

#define BLOCK (2 * STANDIN_MIB)
#define SHARED_MOST STANDIN_MIB
#define SMALLEST 512
#define PIECES (BLOCK / SMALLEST)
#define LOW_FIRST 0x2000000u
#define LOW_END 0xf0000000u

struct block {
    struct block *next;
    struct context *context;
    int gpu;
    CUdeviceptr base;
    uint64_t piece; /* the size of each */
    unsigned held;
    bool low;
    bool taken[PIECES];
};

static struct block *blocks;

void blocks_forget(void)
{
    blocks = NULL;
}

uint64_t blocks_of(uint64_t bytes)
{
    return (bytes + BLOCK - 1) / BLOCK * BLOCK;
}

/* Programs of CUDA 3.1 and before have addresses of 32 bits; those are used again after 4 GiB. */
static CUdeviceptr addresses(uint64_t bytes, bool low)
{
    static CUdeviceptr next = LOW_FIRST;
    if (!low)
        return (address_take(bytes + BLOCK) + BLOCK - 1) / BLOCK * BLOCK;
    if (next + bytes > LOW_END)
        next = LOW_FIRST;
    next += bytes;
    return next - bytes;
}

static struct block *block_with_room(int gpu, uint64_t piece, bool low)
{
    struct block *found = blocks;
    while (found && (found->gpu != gpu || found->piece != piece || found->low != low ||
                     found->context != context_current() || found->held == BLOCK / piece))
        found = found->next;
    return found;
}

static struct block *block_make(int gpu, uint64_t piece, bool low)
{
    struct block *made = calloc(1, sizeof *made);
    if (!made || charge(gpu, BLOCK)) {
        free(made);
        return NULL;
    }
    *made = (struct block){.next = blocks, .context = context_current(), .gpu = gpu, .piece = piece,
                           .base = addresses(BLOCK, low), .low = low};
    return blocks = made;
}

CUresult blocks_take(int gpu, uint64_t bytes, bool low, CUdeviceptr *address)
{
    uint64_t piece = SMALLEST, place = 0;
    if (bytes > SHARED_MOST) {
        CUresult result = charge(gpu, blocks_of(bytes));
        if (!result)
            *address = addresses(blocks_of(bytes), low);
        return result;
    }
    while (piece < bytes)
        piece *= 2;
    struct block *block = block_with_room(gpu, piece, low);
    if (!block)
        block = block_make(gpu, piece, low);
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    while (block->taken[place])
        place++;
    block->taken[place] = true;
    block->held++;
    *address = block->base + place * piece;
    return CUDA_SUCCESS;
}

void blocks_give_back(int gpu, CUdeviceptr address, uint64_t bytes)
{
    struct block **place = &blocks;
    if (bytes > SHARED_MOST) {
        discharge(gpu, blocks_of(bytes));
        return;
    }
    while (*place && (address < (*place)->base || address - (*place)->base >= BLOCK))
        place = &(*place)->next;
    struct block *block = *place;
    if (!block)
        abort(); /* a mistake of the stand-in itself */
    block->taken[(address - block->base) / block->piece] = false;
    if (--block->held)
        return;
    *place = block->next;
    discharge(gpu, BLOCK);
    free(block);
}
