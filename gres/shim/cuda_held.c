/* What this process holds, by address or handle: a hash table with open addressing. */
#include "cuda_shim.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum state { EMPTY, FULL, GONE };

struct place {
    enum state state;
    struct held entry;
};

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static struct place *places;
static size_t size;  /* a power of two */
static size_t taken; /* full or gone */
static size_t full;

static size_t start(enum held_kind kind, uint64_t key)
{
    return (size_t)(((key ^ ((uint64_t)kind << 60)) * UINT64_C(0x9E3779B97F4A7C15)) >> 20);
}

static void put(const struct held *entry)
{
    size_t at = start(entry->kind, entry->key) & (size - 1);
    while (places[at].state == FULL)
        at = (at + 1) & (size - 1);
    taken += places[at].state == EMPTY;
    full++;
    places[at].entry = *entry;
    places[at].state = FULL;
}

/* At most half of the places are taken, and half of them at once are not, after this. */
static int grow(void)
{
    struct place *old = places;
    size_t old_size = size, new_size = 1024;
    while (new_size < full * 4)
        new_size *= 2;
    struct place *new = calloc(new_size, sizeof *new);
    if (!new)
        return -1;
    places = new;
    size = new_size;
    taken = full = 0;
    for (size_t at = 0; at < old_size; at++)
        if (old[at].state == FULL)
            put(&old[at].entry);
    free(old);
    return 0;
}

static struct place *look(enum held_kind kind, uint64_t key)
{
    for (size_t step = 0, at = start(kind, key); step < size; step++, at++) {
        struct place *place = &places[at & (size - 1)];
        if (place->state == EMPTY)
            return NULL;
        if (place->state == FULL && place->entry.kind == kind && place->entry.key == key)
            return place;
    }
    return NULL;
}

void held_add(const struct held *entry)
{
    pthread_mutex_lock(&guard);
    struct place *stale = look(entry->kind, entry->key);
    if (stale) { /* the driver has given the address again, so it ended in a way that is not seen here */
        ledger_release(stale->entry.device, stale->entry.bytes);
        stale->entry = *entry;
    } else if ((taken + 1) * 2 <= size || !grow()) {
        put(entry);
    } /* else without memory for the table: the bytes stay charged until the process ends */
    pthread_mutex_unlock(&guard);
}

static int get(enum held_kind kind, uint64_t key, struct held *entry, int remove)
{
    pthread_mutex_lock(&guard);
    struct place *place = look(kind, key);
    if (place)
        *entry = place->entry;
    if (place && remove) {
        place->state = GONE;
        full--;
    }
    pthread_mutex_unlock(&guard);
    return place != NULL;
}

int held_take(enum held_kind kind, uint64_t key, struct held *entry)
{
    return get(kind, key, entry, 1);
}

int held_look(enum held_kind kind, uint64_t key, struct held *entry)
{
    return get(kind, key, entry, 0);
}

int held_around(enum held_kind kind, uint64_t address, struct held *entry)
{
    int found = 0;
    pthread_mutex_lock(&guard);
    for (size_t at = 0; at < size && !found; at++) {
        const struct held *held = &places[at].entry;
        found = places[at].state == FULL && held->kind == kind && address >= held->key &&
                address - held->key < held->size;
        if (found)
            *entry = *held;
    }
    pthread_mutex_unlock(&guard);
    return found;
}

void held_end_context(CUcontext context)
{
    if (!context)
        return;
    pthread_mutex_lock(&guard);
    for (size_t at = 0; at < size; at++) {
        struct place *place = &places[at];
        if (place->state != FULL || place->entry.context != context)
            continue;
        ledger_release(place->entry.device, place->entry.bytes);
        place->state = GONE;
        full--;
    }
    pthread_mutex_unlock(&guard);
}

/* A child starts without what its parent holds: the driver gives it none of that either. Its parent's
 * other threads may have been anywhere in here, so nothing is freed. */
void held_forget(void)
{
    pthread_mutex_init(&guard, NULL);
    places = NULL;
    size = taken = full = 0;
}
