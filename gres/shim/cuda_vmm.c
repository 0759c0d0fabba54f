/* Physical memory and its mappings (virtual memory management). It stays allocated, and charged, as long as
 * it has a handle or a mapping. */
#include "cuda_vmm.h"

#include "cuda_allocations.h"
#include "cuda_charge.h"
#include "cuda_device.h"
#include "cuda_guard.h"
#include "ledger.h"

#include <stdlib.h>
#include <string.h>

struct physical {
    int device;
    uint64_t bytes;
    unsigned int handles, mappings;
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

static void drop_if_gone(struct physical *physical)
{
    if (physical->handles || physical->mappings)
        return;
    ledger_release(physical->device, physical->bytes);
    free(physical);
}

/* One more reference to a handle; the driver may return the same one again for the same memory. */
static void handle_add(CUmemHandle handle, struct physical *physical)
{
    struct allocation entry;
    if (!allocation_remove(ALLOCATION_HANDLE, handle, &entry) || entry.owner != physical)
        entry = (struct allocation){.kind = ALLOCATION_HANDLE, .key = handle, .owner = physical};
    entry.size++;
    physical->handles++;
    allocation_insert(&entry);
}

static struct physical *physical_of(CUmemHandle handle)
{
    struct allocation entry;
    return allocation_find(ALLOCATION_HANDLE, handle, &entry) ? entry.owner : NULL;
}

/* --- handles --- */

WRAP(cuMemCreate, CUmemHandle *handle, size_t bytes, const CUmemAllocationProp *wanted, uint64_t flags)
{
    if (!wanted || wanted->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return real_cuMemCreate(handle, bytes, wanted, flags);
    struct physical *physical = calloc(1, sizeof *physical);
    if (!physical)
        return CUDA_ERROR_OUT_OF_MEMORY;
    physical->device = device_of(wanted->location.id);
    physical->bytes = bytes;
    CUresult result = charge(physical->device, bytes);
    if (result) {
        free(physical);
        return result;
    }
    guard_enter();
    result = real_cuMemCreate(handle, bytes, wanted, flags);
    if (result)
        drop_if_gone(physical);
    else
        handle_add(*handle, physical);
    guard_leave();
    return result;
}

WRAP(cuMemRelease, CUmemHandle handle)
{
    struct allocation entry;
    guard_enter();
    CUresult result = real_cuMemRelease(handle);
    if (!result && allocation_remove(ALLOCATION_HANDLE, handle, &entry)) {
        struct physical *physical = entry.owner;
        if (--entry.size)
            allocation_insert(&entry);
        physical->handles--;
        drop_if_gone(physical);
    }
    guard_leave();
    return result;
}

WRAP(cuMemRetainAllocationHandle, CUmemHandle *handle, void *address)
{
    struct allocation mapping;
    guard_enter();
    CUresult result = real_cuMemRetainAllocationHandle(handle, address);
    if (!result && allocation_containing(ALLOCATION_MAPPING, (uintptr_t)address, &mapping) &&
        mapping.owner)
        handle_add(*handle, mapping.owner);
    guard_leave();
    return result;
}

/* --- mappings --- */

WRAP(cuMemMap, CUdeviceptr address, size_t bytes, size_t offset, CUmemHandle handle, uint64_t flags)
{
    guard_enter();
    CUresult result = real_cuMemMap(address, bytes, offset, handle, flags);
    if (!result) {
        /* Also for memory that is not charged, so that cuMemUnmap finds the next mapping. */
        struct physical *physical = physical_of(handle);
        if (physical)
            physical->mappings++;
        allocation_insert(&(struct allocation){
            .kind = ALLOCATION_MAPPING, .key = address, .size = bytes, .owner = physical});
    }
    guard_leave();
    return result;
}

static void unmapped(struct physical *physical)
{
    if (!physical)
        return;
    physical->mappings--;
    drop_if_gone(physical);
}

/* Several mappings that follow each other may be ended by one call. */
WRAP(cuMemUnmap, CUdeviceptr address, size_t bytes)
{
    struct allocation mapping;
    guard_enter();
    CUresult result = real_cuMemUnmap(address, bytes);
    CUdeviceptr end = address + bytes;
    while (!result && address < end && allocation_remove(ALLOCATION_MAPPING, address, &mapping)) {
        unmapped(mapping.owner);
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
    unmapped(tile->physical);
    free(tile);
}

/* A tile that is unmapped in other pieces than it was mapped stays charged until its array ends. */
static void tiles_change(const CUarrayMapInfo *info)
{
    struct tile **place = &tiles;
    while (*place && !is_tile(*place, info))
        place = &(*place)->next;
    struct physical *physical = NULL;
    if (info->memOperationType == CU_MEM_OPERATION_TYPE_MAP)
        physical = physical_of(info->memHandle);
    if (physical) /* before the old one is dropped: it may be the same */
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

static CUresult map_arrays(CUresult (*real)(CUarrayMapInfo *, unsigned int, CUstream),
                           CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
    guard_enter();
    CUresult result = real(list, count, stream);
    for (unsigned int at = 0; !result && at < count; at++)
        tiles_change(&list[at]);
    guard_leave();
    return result;
}

WRAP(cuMemMapArrayAsync, CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
    return map_arrays(real_cuMemMapArrayAsync, list, count, stream);
}

WRAP(cuMemMapArrayAsync_ptsz, CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
    return map_arrays(real_cuMemMapArrayAsync_ptsz, list, count, stream);
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
