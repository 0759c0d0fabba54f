/* The allocation table: what this process holds, by address or handle. */
#ifndef SLIPWAY_CUDA_ALLOCATIONS_H
#define SLIPWAY_CUDA_ALLOCATIONS_H

#include "cuda_abi.h"

enum allocation_kind {
    ALLOCATION_POINTER,
    ALLOCATION_ARRAY,
    ALLOCATION_MIPMAP,
    ALLOCATION_HANDLE,
    ALLOCATION_MAPPING,
    ALLOCATION_GRAPH,
    ALLOCATION_BLOCK, /* by its number; `size` pieces are in it */
};

struct allocation {
    enum allocation_kind kind;
    uint64_t key;
    int device;
    uint64_t bytes;    /* charged for this allocation; 0 if its owner or its block is charged */
    uint64_t size;     /* its size, if its owner is charged; 1 if its block is */
    CUcontext context; /* with which it ends; NULL if it outlives contexts */
    void *owner;       /* a struct of the file that inserted it */
};

void allocation_insert(const struct allocation *entry);
/* Each returns 1 if there was one, which is copied to `entry`. */
int allocation_remove(enum allocation_kind kind, uint64_t key, struct allocation *entry);
int allocation_find(enum allocation_kind kind, uint64_t key, struct allocation *entry);
/* The one whose range has the address; linear in the size of the table. */
int allocation_containing(enum allocation_kind kind, uint64_t address, struct allocation *entry);
/* Removes all that ended with the context, and releases their bytes. */
void allocations_end_context(CUcontext context);
void allocations_forget(void); /* in a child, which holds nothing */

#endif
