#include "cuda_blocks.h"

#include "cuda_guard.h"
#include "ledger.h"

#define BLOCK_SMALLEST UINT64_C(512) /* the alignment of addresses */

uint64_t block_most(uint64_t bytes)
{
    uint64_t rounded;
    if (__builtin_add_overflow(bytes, BLOCK_BYTES - 1, &rounded))
        return UINT64_MAX;
    return rounded / BLOCK_BYTES * BLOCK_BYTES;
}

uint64_t block_estimate(uint64_t bytes)
{
    uint64_t taken = BLOCK_SMALLEST;
    if (!bytes || bytes > BLOCK_SHARED_MOST)
        return block_most(bytes);
    while (taken < bytes)
        taken *= 2;
    return taken;
}

/* One more piece in the block at an address; whether it is the first. With the guard. */
static int block_add(int device, uint64_t address, CUcontext context)
{
    struct allocation block;
    int known = allocation_remove(ALLOCATION_BLOCK, address / BLOCK_BYTES, &block);
    if (!known)
        block = (struct allocation){.kind = ALLOCATION_BLOCK,
                                    .key = address / BLOCK_BYTES,
                                    .device = device,
                                    .bytes = BLOCK_BYTES,
                                    .context = context};
    block.size++;
    allocation_insert(&block);
    return !known;
}

static void block_remove(uint64_t address)
{
    struct allocation block;
    if (!allocation_remove(ALLOCATION_BLOCK, address / BLOCK_BYTES, &block))
        return; /* its context has ended */
    if (--block.size)
        allocation_insert(&block);
    else
        ledger_release(block.device, block.bytes);
}

void block_record(int device, uint64_t address, uint64_t bytes, CUcontext context)
{
    const int piece = bytes <= BLOCK_SHARED_MOST;
    struct allocation stale;
    guard_enter();
    if (allocation_remove(ALLOCATION_POINTER, address, &stale))
        block_release(&stale); /* it was freed in a way that is not seen here */
    if (piece && !block_add(device, address, context))
        ledger_release(device, BLOCK_BYTES);
    allocation_insert(&(struct allocation){.kind = ALLOCATION_POINTER,
                                           .key = address,
                                           .device = device,
                                           .bytes = piece ? 0 : block_most(bytes),
                                           .size = piece,
                                           .context = context});
    guard_leave();
}

void block_release(const struct allocation *entry)
{
    if (!entry->size) {
        ledger_release(entry->device, entry->bytes);
        return;
    }
    guard_enter();
    block_remove(entry->key);
    guard_leave();
}
