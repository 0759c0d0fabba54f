/* The allocation table: a hash table with open addressing. */
#include "cuda_allocations.h"

#include "ledger.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum state { EMPTY, FULL, DELETED };

struct bucket {
    enum state state;
    struct allocation entry;
};

static pthread_mutex_t allocations_lock = PTHREAD_MUTEX_INITIALIZER;
static struct bucket *buckets;
static size_t size; /* a power of two */
static size_t used; /* full or deleted */
static size_t full;

static size_t bucket_hash(enum allocation_kind kind, uint64_t key)
{
    return (size_t)(((key ^ ((uint64_t)kind << 60)) * UINT64_C(0x9E3779B97F4A7C15)) >> 20);
}

static void bucket_insert(const struct allocation *entry)
{
    size_t at = bucket_hash(entry->kind, entry->key) & (size - 1);
    while (buckets[at].state == FULL)
        at = (at + 1) & (size - 1);
    used += buckets[at].state == EMPTY;
    full++;
    buckets[at].entry = *entry;
    buckets[at].state = FULL;
}

/* A quarter of the buckets at most are full after this; bucket_insert() may fill them up to a half. */
static int buckets_grow(void)
{
    struct bucket *old = buckets;
    size_t old_size = size, new_size = 1024;
    while (new_size < full * 4)
        new_size *= 2;
    struct bucket *new = calloc(new_size, sizeof *new);
    if (!new)
        return -1;
    buckets = new;
    size = new_size;
    used = full = 0;
    for (size_t at = 0; at < old_size; at++)
        if (old[at].state == FULL)
            bucket_insert(&old[at].entry);
    free(old);
    return 0;
}

static struct bucket *bucket_find(enum allocation_kind kind, uint64_t key)
{
    for (size_t step = 0, at = bucket_hash(kind, key); step < size; step++, at++) {
        struct bucket *bucket = &buckets[at & (size - 1)];
        if (bucket->state == EMPTY)
            return NULL;
        if (bucket->state == FULL && bucket->entry.kind == kind && bucket->entry.key == key)
            return bucket;
    }
    return NULL;
}

static void bucket_delete(struct bucket *bucket)
{
    bucket->state = DELETED;
    full--;
}

void allocation_insert(const struct allocation *entry)
{
    pthread_mutex_lock(&allocations_lock);
    struct bucket *stale = bucket_find(entry->kind, entry->key);
    if (stale) { /* the driver has reused the address, so it was freed in a way that is not seen here */
        ledger_release(stale->entry.device, stale->entry.bytes);
        stale->entry = *entry;
    } else if ((used + 1) * 2 <= size || !buckets_grow()) {
        bucket_insert(entry);
    } /* else without memory for the table: the bytes stay charged until the process ends */
    pthread_mutex_unlock(&allocations_lock);
}

static int allocation_get(enum allocation_kind kind, uint64_t key, struct allocation *entry, int remove)
{
    pthread_mutex_lock(&allocations_lock);
    struct bucket *bucket = bucket_find(kind, key);
    if (bucket)
        *entry = bucket->entry;
    if (bucket && remove)
        bucket_delete(bucket);
    pthread_mutex_unlock(&allocations_lock);
    return bucket != NULL;
}

int allocation_remove(enum allocation_kind kind, uint64_t key, struct allocation *entry)
{
    return allocation_get(kind, key, entry, 1);
}

int allocation_find(enum allocation_kind kind, uint64_t key, struct allocation *entry)
{
    return allocation_get(kind, key, entry, 0);
}

int allocation_containing(enum allocation_kind kind, uint64_t address, struct allocation *entry)
{
    int found = 0;
    pthread_mutex_lock(&allocations_lock);
    for (size_t at = 0; at < size && !found; at++) {
        const struct allocation *each = &buckets[at].entry;
        found = buckets[at].state == FULL && each->kind == kind && address >= each->key &&
                address - each->key < each->size;
        if (found)
            *entry = *each;
    }
    pthread_mutex_unlock(&allocations_lock);
    return found;
}

void allocations_end_context(CUcontext context)
{
    if (!context)
        return;
    pthread_mutex_lock(&allocations_lock);
    for (size_t at = 0; at < size; at++) {
        struct bucket *bucket = &buckets[at];
        if (bucket->state != FULL || bucket->entry.context != context)
            continue;
        ledger_release(bucket->entry.device, bucket->entry.bytes);
        bucket_delete(bucket);
    }
    pthread_mutex_unlock(&allocations_lock);
}

/* A child inherits none of its parent's GPU memory. The parent's other threads may have been anywhere in
 * here, so nothing is freed. */
void allocations_forget(void)
{
    pthread_mutex_init(&allocations_lock, NULL);
    buckets = NULL;
    size = used = full = 0;
}
