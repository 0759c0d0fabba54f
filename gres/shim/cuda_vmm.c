/* Physical memory and its mappings (virtual memory management). It stays allocated, and charged, as long as
 * it has a handle or a mapping. */
#include "cuda_vmm.h"

#include "cuda_allocations.h"
#include "cuda_charge.h"
#include "cuda_device.h"
#include "cuda_guard.h"
#include "ledger.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>

struct physical {
    int device;
    uint64_t bytes;
    unsigned int handles, mappings;
    unsigned int calls; /* on their way in the driver */
};

/* A part of a sparse array that has memory. */
struct tile {
    struct tile *next;
    void *array;
    int subresource_type;
    unsigned char subresource[sizeof((CUarrayMapInfo *)0)->subresource];
    struct physical *physical;
};

static struct tile *tiles;

/* --- how many references the memory has; with the guard --- */

/* Every call of the driver that may end or begin a reference is made without the guard, and holds one of its
 * own meanwhile (`calls`): the memory stays known, and charged, until the last such call has returned. */
static void physical_begin(struct physical *physical)
{
    if (physical)
        physical->calls++;
}

static void physical_end(struct physical *physical)
{
    if (!physical || --physical->calls || physical->handles || physical->mappings)
        return;
    ledger_release(physical->device, physical->bytes);
    free(physical);
}

/* One more reference by a handle. The driver may return the same one again for the same memory, or reuse the
 * number of one whose release is still on its way. */
static void handle_add(CUmemHandle handle, struct physical *physical)
{
    struct allocation entry;
    if (!allocation_remove(ALLOCATION_HANDLE, handle, &entry) || entry.owner != physical)
        entry = (struct allocation){.kind = ALLOCATION_HANDLE, .key = handle, .owner = physical};
    entry.size++;
    physical->handles++;
    allocation_insert(&entry);
}

static void handle_remove(CUmemHandle handle, struct physical *physical)
{
    struct allocation entry;
    physical->handles--;
    if (!allocation_find(ALLOCATION_HANDLE, handle, &entry) || entry.owner != physical)
        return;
    allocation_remove(ALLOCATION_HANDLE, handle, &entry);
    if (--entry.size)
        allocation_insert(&entry);
}

static struct physical *handle_find(CUmemHandle handle)
{
    struct allocation entry;
    return allocation_find(ALLOCATION_HANDLE, handle, &entry) ? entry.owner : NULL;
}

/* --- the beginning and the end of a call of the driver --- */

static struct physical *call_begin_by_handle(CUmemHandle handle)
{
    guard_enter();
    struct physical *physical = handle_find(handle);
    physical_begin(physical);
    guard_leave();
    return physical;
}

static struct physical *call_begin_by_address(void *address)
{
    struct allocation mapping;
    struct physical *physical = NULL;
    guard_enter();
    if (allocation_containing(ALLOCATION_MAPPING, (uintptr_t)address, &mapping))
        physical = mapping.owner;
    physical_begin(physical);
    guard_leave();
    return physical;
}

/* --- handles --- */

WRAP(cuMemCreate, CUmemHandle *handle, size_t bytes, const CUmemAllocationProp *wanted, uint64_t flags)
{
    if (!handle || !wanted || wanted->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return real_cuMemCreate(handle, bytes, wanted, flags);
    struct physical *physical = calloc(1, sizeof *physical);
    if (!physical)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *physical =
        (struct physical){.device = device_of(wanted->location.id), .bytes = bytes, .calls = 1};
    struct charge_retry retry = {0};
    CUresult result = charge(physical->device, bytes);
    if (result) {
        trace_refused(__func__, bytes);
        free(physical);
        return result;
    }
    do
        result = real_cuMemCreate(handle, bytes, wanted, flags);
    while (charge_again(result, &retry));
    guard_enter();
    if (!result)
        handle_add(*handle, physical);
    physical_end(physical);
    guard_leave();
    return result;
}

WRAP(cuMemRelease, CUmemHandle handle)
{
    struct physical *physical = call_begin_by_handle(handle);
    CUresult result = real_cuMemRelease(handle);
    guard_enter();
    if (!result && physical)
        handle_remove(handle, physical);
    physical_end(physical);
    guard_leave();
    return result;
}

WRAP(cuMemRetainAllocationHandle, CUmemHandle *handle, void *address)
{
    struct physical *physical = call_begin_by_address(address);
    CUresult result = real_cuMemRetainAllocationHandle(handle, address);
    guard_enter();
    if (!result && physical && handle)
        handle_add(*handle, physical);
    physical_end(physical);
    guard_leave();
    return result;
}

/* --- mappings --- */

WRAP(cuMemMap, CUdeviceptr address, size_t bytes, size_t offset, CUmemHandle handle, uint64_t flags)
{
    struct physical *physical = call_begin_by_handle(handle);
    CUresult result = real_cuMemMap(address, bytes, offset, handle, flags);
    guard_enter();
    if (!result) {
        /* Also for memory that is not charged, so that cuMemUnmap finds the next mapping. */
        if (physical)
            physical->mappings++;
        allocation_insert(&(struct allocation){
            .kind = ALLOCATION_MAPPING, .key = address, .size = bytes, .owner = physical});
    }
    physical_end(physical);
    guard_leave();
    return result;
}

static void mapping_end(struct physical *physical)
{
    if (!physical)
        return;
    physical->mappings--;
    physical->calls++;
    physical_end(physical);
}

/* Several mappings that follow each other may be ended by one call. */
WRAP(cuMemUnmap, CUdeviceptr address, size_t bytes)
{
    struct allocation mapping;
    CUresult result = real_cuMemUnmap(address, bytes);
    CUdeviceptr end = address + bytes;
    guard_enter();
    while (!result && address < end && allocation_remove(ALLOCATION_MAPPING, address, &mapping)) {
        mapping_end(mapping.owner);
        address += mapping.size;
    }
    guard_leave();
    return result;
}

/* --- sparse arrays --- */

static int is_tile(const struct tile *tile, const CUarrayMapInfo *info)
{
    return tile->array == info->resource && tile->subresource_type == info->subresourceType &&
           !memcmp(tile->subresource, &info->subresource, sizeof tile->subresource);
}

static void tile_end(struct tile **place)
{
    struct tile *tile = *place;
    *place = tile->next;
    mapping_end(tile->physical);
    free(tile);
}

/* A tile that is unmapped in other pieces than it was mapped stays charged until its array ends. */
static void tile_change(const CUarrayMapInfo *info, struct physical *physical)
{
    struct tile **place = &tiles;
    while (*place && !is_tile(*place, info))
        place = &(*place)->next;
    if (physical)
        physical->mappings++;
    if (*place)
        tile_end(place);
    if (!physical)
        return;
    struct tile *tile = malloc(sizeof *tile);
    if (!tile)
        return; /* charged until the process ends */
    *tile = (struct tile){.next = tiles,
                          .array = info->resource,
                          .subresource_type = info->subresourceType,
                          .physical = physical};
    memcpy(tile->subresource, &info->subresource, sizeof tile->subresource);
    tiles = tile;
}

void tiles_end(void *array)
{
    guard_enter();
    for (struct tile **place = &tiles; *place;)
        if ((*place)->array == array)
            tile_end(place);
        else
            place = &(*place)->next;
    guard_leave();
}

void tiles_forget(void)
{
    tiles = NULL;
}

/* All memory that the list maps, in its order; NULL for what is not charged or is unmapped. */
static void tiles_begin(struct physical **memory, const CUarrayMapInfo *list, unsigned int count)
{
    guard_enter();
    for (unsigned int at = 0; at < count; at++) {
        if (list[at].memOperationType == CU_MEM_OPERATION_TYPE_MAP)
            memory[at] = handle_find(list[at].memHandle);
        physical_begin(memory[at]);
    }
    guard_leave();
}

static void tiles_finish(CUresult result, struct physical **memory, const CUarrayMapInfo *list,
                         unsigned int count)
{
    guard_enter();
    for (unsigned int at = 0; at < count; at++) {
        if (!result)
            tile_change(&list[at], memory[at]);
        physical_end(memory[at]);
    }
    guard_leave();
}

static CUresult tiles_map(CUresult (*real)(CUarrayMapInfo *, unsigned int, CUstream),
                          CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
    if (!list || !count)
        return real(list, count, stream);
    struct physical **memory = calloc(count, sizeof(struct physical *));
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    tiles_begin(memory, list, count);
    CUresult result = real(list, count, stream);
    tiles_finish(result, memory, list, count);
    free(memory);
    return result;
}

WRAP(cuMemMapArrayAsync, CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
    return tiles_map(real_cuMemMapArrayAsync, list, count, stream);
}

WRAP(cuMemMapArrayAsync_ptsz, CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
    return tiles_map(real_cuMemMapArrayAsync_ptsz, list, count, stream);
}

const struct hook vmm_hooks[] = {
    HOOK(cuMemCreate),
    HOOK(cuMemRelease),
    HOOK(cuMemRetainAllocationHandle),
    HOOK(cuMemMap),
    HOOK(cuMemUnmap),
    HOOK(cuMemMapArrayAsync),
    HOOK(cuMemMapArrayAsync_ptsz),
    HOOKS_END,
};
