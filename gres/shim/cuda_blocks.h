/* How much memory the driver takes for an allocation that a program asked for: it hands out blocks.
 *
 * As measured by others with many allocations of one size (JustVugg/colibri #1244: RTX 3090, CUDA 13.1; the
 * same on H100 and H200), in bytes for each. tests/gpu measures it where there is a GPU (case `pieces`),
 * and tests/unit/gres/memory/rounding.py reads these lines:
 *
 *      asked      taken
 *       4096       4096
 *     786432    1048576
 *    1048577    2097152
 *    2097153    4194304
 *
 * So what is larger than 1 MiB has blocks of 2 MiB of its own. Smaller pieces share blocks, and how many fit
 * into one is the driver's decision; but pieces in one block have addresses in one aligned range of 2 MiB. A
 * block is charged with the first piece at an address in it, until the last one is freed. That needs no
 * assumption about sizes, charges a program of many small buffers no more than they take, and counts a
 * block that is nearly empty in full, as it cannot be used by others. */
#ifndef SLIPWAY_CUDA_BLOCKS_H
#define SLIPWAY_CUDA_BLOCKS_H

#include "cuda_allocations.h"

#define BLOCK_BYTES (UINT64_C(2) << 20)
#define BLOCK_SHARED_MOST (UINT64_C(1) << 20) /* the largest piece that shares a block with others */

/* The most that the driver takes for so many bytes. */
uint64_t block_most(uint64_t bytes);
/* For memory without an address, whose blocks cannot be told: rounded up so that pieces of one size fill
 * blocks, as the driver's do. Too little by one block for each size at most, as long as none is freed. */
uint64_t block_estimate(uint64_t bytes);
/* Records memory at an address, for which block_most(bytes) were charged, and releases what is too much. */
void block_record(int device, uint64_t address, uint64_t bytes, CUcontext context);
/* Releases what was charged for an entry that has been removed from the allocation table. */
void block_release(const struct allocation *entry);

#endif
