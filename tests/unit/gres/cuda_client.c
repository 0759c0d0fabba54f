/* A program of CUDA that the tests lead by lines on its standard input, one answer for each:
 *   cuda_client /path/of/libcuda.so.1
 * Its types are the stand-in's, so that a mistake in the shim's own is seen. */
#define _GNU_SOURCE
#include "cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELD 64
#define PER_THREAD ((CUstream)2)

static void *library;

static void *find(const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        printf("no %s\n", name);
        exit(3);
    }
    return found;
}

/* Unprototyped: every argument has to have its own type already. */
#define CU(name, ...) ((CUresult(*)())find(#name))(__VA_ARGS__)

struct taken {
    const struct kind *kind;
    uint64_t address; /* or handle */
    void *pool;
};

static const CUmemPoolProps ON_GPU = {.allocType = 1, .location = {LOCATION_DEVICE, 0}};
static const CUmemAllocationProp PHYSICAL = {.type = 1, .location = {LOCATION_DEVICE, 0}};
static const CUmemAllocationProp OF_HOST = {.type = 1, .location = {LOCATION_HOST, 0}};

/* --- each way to take memory --- */

static CUresult plain(struct taken *to, size_t bytes) { return CU(cuMemAlloc_v2, &to->address, bytes); }
static CUresult old(struct taken *to, size_t bytes) { return CU(cuMemAlloc, &to->address, (unsigned)bytes); }
static CUresult managed(struct taken *to, size_t bytes) { return CU(cuMemAllocManaged, &to->address, bytes, 1); }

static CUresult pitch(struct taken *to, size_t bytes)
{
    size_t length;
    return CU(cuMemAllocPitch_v2, &to->address, &length, (size_t)512, bytes / 512, 4);
}

static CUresult padded(struct taken *to, size_t bytes) /* rows of 1 byte, each of which takes 512 */
{
    size_t length;
    return CU(cuMemAllocPitch_v2, &to->address, &length, (size_t)1, bytes / 512, 4);
}

static CUresult old_pitch(struct taken *to, size_t bytes)
{
    unsigned length;
    return CU(cuMemAllocPitch, &to->address, &length, 512u, (unsigned)(bytes / 512), 4);
}

static CUresult array(struct taken *to, size_t bytes)
{
    const CUDA_ARRAY_DESCRIPTOR wanted = {bytes / 1024, 256, 0x20, 1};
    return CU(cuArrayCreate_v2, &to->address, &wanted);
}

static CUresult old_array(struct taken *to, size_t bytes)
{
    const CUDA_ARRAY_DESCRIPTOR_v1 wanted = {(unsigned)(bytes / 1024), 512, 0x10, 1};
    return CU(cuArrayCreate, &to->address, &wanted);
}

static CUresult array3d(struct taken *to, size_t bytes)
{
    const CUDA_ARRAY3D_DESCRIPTOR wanted = {bytes / 1024, 32, 8, 0x01, 4, 0};
    return CU(cuArray3DCreate_v2, &to->address, &wanted);
}

static CUresult old_array3d(struct taken *to, size_t bytes)
{
    const CUDA_ARRAY3D_DESCRIPTOR_v1 wanted = {(unsigned)(bytes / 1024), 32, 8, 0x02, 2, 0};
    return CU(cuArray3DCreate, &to->address, &wanted);
}

static CUresult mipmap(struct taken *to, size_t bytes) /* two thirds, and the third behind it */
{
    const CUDA_ARRAY3D_DESCRIPTOR wanted = {bytes / 3 * 2, 0, 0, 0x01, 1, 0};
    return CU(cuMipmappedArrayCreate, &to->address, &wanted, 2u);
}

static CUresult sparse(struct taken *to, size_t bytes)
{
    const CUDA_ARRAY3D_DESCRIPTOR wanted = {bytes, 0, 0, 0x01, 1, 0x40};
    return CU(cuArray3DCreate_v2, &to->address, &wanted);
}

static CUresult async(struct taken *to, size_t bytes)
{
    return CU(cuMemAllocAsync, &to->address, bytes, (CUstream)NULL);
}

static CUresult async_ptsz(struct taken *to, size_t bytes)
{
    return CU(cuMemAllocAsync_ptsz, &to->address, bytes, (CUstream)NULL);
}

static CUresult pooled(struct taken *to, size_t bytes)
{
    CUresult result = CU(cuMemPoolCreate, &to->pool, &ON_GPU);
    return result ? result
                  : CU(cuMemAllocFromPoolAsync, &to->address, bytes, to->pool, (CUstream)NULL);
}

static CUresult pooled_ptsz(struct taken *to, size_t bytes)
{
    CUresult result = CU(cuMemPoolCreate, &to->pool, &ON_GPU);
    return result ? result
                  : CU(cuMemAllocFromPoolAsync_ptsz, &to->address, bytes, to->pool, PER_THREAD);
}

static CUresult physical(struct taken *to, size_t bytes)
{
    return CU(cuMemCreate, &to->address, bytes, &PHYSICAL, 0ull);
}

static CUresult of_host(struct taken *to, size_t bytes)
{
    return CU(cuMemCreate, &to->address, bytes, &OF_HOST, 0ull);
}

static CUresult host(struct taken *to, size_t bytes)
{
    return CU(cuMemHostAlloc, &to->address, bytes, 0u);
}

static CUresult launch(CUgraphExec executable)
{
    CUresult result = CU(cuGraphLaunch, executable, (CUstream)NULL);
    CU(cuGraphExecDestroy, executable);
    return result;
}

static CUresult graph(struct taken *to, size_t bytes)
{
    CUgraph made;
    CUgraphNode node;
    CUgraphExec executable;
    CUDA_MEM_ALLOC_NODE_PARAMS wanted = {.poolProps = ON_GPU, .bytesize = bytes};
    CU(cuGraphCreate, &made, 0u);
    CUresult result = CU(cuGraphAddMemAllocNode, &node, made, (void *)NULL, (size_t)0, &wanted);
    to->address = wanted.dptr;
    if (!result)
        result = CU(cuGraphInstantiateWithFlags, &executable, made, 0ull);
    return result ? result : launch(executable);
}

static CUresult graph_node(struct taken *to, size_t bytes)
{
    CUgraph made;
    CUgraphNode node;
    CUgraphExec executable;
    CUgraphNodeParams wanted = {.type = NODE_MEM_ALLOC,
                                .alloc = {.poolProps = ON_GPU, .bytesize = bytes}};
    CU(cuGraphCreate, &made, 0u);
    CUresult result = CU(cuGraphAddNode, &node, made, (void *)NULL, (size_t)0, &wanted);
    to->address = wanted.alloc.dptr;
    if (!result)
        result = CU(cuGraphInstantiate_v2, &executable, made, (void *)NULL, (char *)NULL, (size_t)0);
    if (!result)
        result = CU(cuGraphUpload, executable, (CUstream)NULL);
    return result ? result : launch(executable);
}

static CUresult nested(struct taken *to, size_t bytes)
{
    CUgraph inner, outer;
    CUgraphNode node;
    CUgraphExec executable;
    CUDA_MEM_ALLOC_NODE_PARAMS wanted = {.poolProps = ON_GPU, .bytesize = bytes};
    CU(cuGraphCreate, &inner, 0u);
    CU(cuGraphCreate, &outer, 0u);
    CUresult result = CU(cuGraphAddMemAllocNode, &node, inner, (void *)NULL, (size_t)0, &wanted);
    if (!result)
        result = CU(cuGraphAddChildGraphNode, &node, outer, (void *)NULL, (size_t)0, inner);
    to->address = wanted.dptr;
    if (!result)
        result = CU(cuGraphInstantiateWithFlags, &executable, outer, 0ull);
    return result ? result : launch(executable);
}

static CUresult captured(struct taken *to, size_t bytes)
{
    CUgraph made;
    CUgraphExec executable;
    CUstream stream;
    CUDA_GRAPH_INSTANTIATE_PARAMS how = {.flags = 2}; /* with an upload */
    CU(cuStreamCreate, &stream, 0u);
    CU(cuStreamBeginCapture_v2, stream, 2);
    CUresult result = CU(cuMemAllocAsync, &to->address, bytes, stream);
    CU(cuStreamEndCapture, stream, &made);
    CU(cuStreamDestroy_v2, stream);
    if (!result)
        result = CU(cuGraphInstantiateWithParams, &executable, made, &how);
    return result ? result : launch(executable);
}

/* --- and to free it --- */

static CUresult free_plain(struct taken *from) { return CU(cuMemFree_v2, from->address); }
static CUresult free_old(struct taken *from) { return CU(cuMemFree, (unsigned)from->address); }
static CUresult free_array(struct taken *from) { return CU(cuArrayDestroy, from->address); }
static CUresult free_mipmap(struct taken *from) { return CU(cuMipmappedArrayDestroy, from->address); }
static CUresult free_physical(struct taken *from) { return CU(cuMemRelease, from->address); }
static CUresult free_host(struct taken *from) { return CU(cuMemFreeHost, from->address); }

static CUresult free_async(struct taken *from)
{
    CUresult result = CU(cuMemFreeAsync, from->address, (CUstream)NULL);
    return result ? result : CU(cuStreamSynchronize, (CUstream)NULL);
}

static CUresult free_async_ptsz(struct taken *from)
{
    CUresult result = CU(cuMemFreeAsync_ptsz, from->address, PER_THREAD);
    return result ? result : CU(cuStreamSynchronize_ptsz, PER_THREAD);
}

static CUresult free_pooled(struct taken *from) /* the pool first: its memory stays until it is freed */
{
    CUresult result = CU(cuMemPoolDestroy, from->pool);
    return result ? result : free_async(from);
}

static CUresult free_graph(struct taken *from)
{
    CUresult result = CU(cuMemFree_v2, from->address);
    return result ? result : CU(cuDeviceGraphMemTrim, 0);
}

static const struct kind {
    const char *name;
    CUresult (*take)(struct taken *to, size_t bytes);
    CUresult (*give)(struct taken *from);
} kinds[] = {
    {"plain", plain, free_plain},
    {"old", old, free_old},
    {"managed", managed, free_plain},
    {"pitch", pitch, free_plain},
    {"padded", padded, free_plain},
    {"old_pitch", old_pitch, free_old},
    {"array", array, free_array},
    {"old_array", old_array, free_array},
    {"array3d", array3d, free_array},
    {"old_array3d", old_array3d, free_array},
    {"mipmap", mipmap, free_mipmap},
    {"sparse", sparse, free_array},
    {"async", async, free_async},
    {"async_ptsz", async_ptsz, free_async_ptsz},
    {"pooled", pooled, free_pooled},
    {"pooled_ptsz", pooled_ptsz, free_pooled},
    {"physical", physical, free_physical},
    {"of_host", of_host, free_physical},
    {"host", host, free_host},
    {"graph", graph, free_graph},
    {"graph_node", graph_node, free_graph},
    {"nested", nested, free_graph},
    {"captured", captured, free_graph},
    {0},
};

static struct taken held[HELD];

static const struct kind *kind_of(const char *name)
{
    const struct kind *kind = kinds;
    while (kind->name && strcmp(kind->name, name))
        kind++;
    return kind->name ? kind : NULL;
}

/* --- commands --- */

static CUresult begin(int ordinal)
{
    CUcontext context;
    CUresult result = CU(cuInit, 0u);
    if (!result)
        result = CU(cuDevicePrimaryCtxRetain, &context, ordinal);
    return result ? result : CU(cuCtxSetCurrent, context);
}

/* take KIND BYTES: the result, and a number to give it back by */
static void take(const char *name, size_t bytes)
{
    int at = 0;
    while (held[at].kind)
        at++;
    held[at] = (struct taken){0};
    CUresult result = kind_of(name)->take(&held[at], bytes);
    if (result && held[at].pool)
        CU(cuMemPoolDestroy, held[at].pool);
    if (!result)
        held[at].kind = kind_of(name);
    printf("%d %d\n", result, at);
}

static CUresult give(int at)
{
    CUresult result = held[at].kind->give(&held[at]);
    held[at].kind = NULL;
    return result;
}

/* churn BYTES: takes and gives back in every way, until it is killed */
static void churn(size_t bytes)
{
    for (;;)
        for (const struct kind *kind = kinds; kind->name; kind++) {
            struct taken one = {0};
            if (!kind->take(&one, bytes))
                kind->give(&one);
        }
}

/* cycle KIND BYTES: how many of 1,000 times it could be taken and given back */
static void cycle(const char *name, size_t bytes)
{
    const struct kind *kind = kind_of(name);
    int good = 0;
    for (int round = 0; round < 1000; round++) {
        struct taken one = {0};
        good += !kind->take(&one, bytes) && !kind->give(&one);
    }
    printf("%d\n", good);
}

/* threads BYTES: every kind in several threads at once, while processes are forked that do the same; how
 * often something went wrong */
static size_t thread_bytes;

static void *one_thread(void *context)
{
    intptr_t bad = CU(cuCtxSetCurrent, context) != 0;
    for (int round = 0; round < 20; round++)
        for (const struct kind *kind = kinds; kind->name; kind++) {
            struct taken one = {0};
            bad += kind->take(&one, thread_bytes) || kind->give(&one);
        }
    return (void *)bad;
}

static CUresult begin(int ordinal);

static void threads(size_t bytes)
{
    pthread_t list[4];
    CUcontext context;
    intptr_t bad = CU(cuCtxGetCurrent, &context), more;
    thread_bytes = bytes;
    for (int at = 0; at < 4; at++)
        bad += pthread_create(&list[at], NULL, one_thread, context) != 0;
    for (int round = 0; round < 10; round++) {
        pid_t child = fork();
        if (!child) {
            struct taken one = {0};
            _exit(begin(0) || plain(&one, bytes) || free_plain(&one));
        }
        int status;
        bad += waitpid(child, &status, 0) != child || status;
    }
    for (int at = 0; at < 4; at++) {
        pthread_join(list[at], (void **)&more);
        bad += more;
    }
    printf("%ld\n", bad);
}

/* start KIND BYTES: takes in a thread of its own; join: its result. What it took has the number of the
 * first free place at `start`. */
static struct {
    pthread_t thread;
    CUcontext context;
    const struct kind *kind;
    size_t bytes;
    int at;
} beside;
static pthread_barrier_t beside_all;

static void *take_beside(void *unused)
{
    CUresult result = CU(cuCtxSetCurrent, beside.context);
    (void)unused;
    if (!result)
        result = beside.kind->take(&held[beside.at], beside.bytes);
    if (result)
        held[beside.at].kind = NULL;
    return (void *)(intptr_t)result;
}

static int start(const char *name, size_t bytes)
{
    beside.kind = kind_of(name);
    beside.bytes = bytes;
    for (beside.at = 0; held[beside.at].kind;)
        beside.at++;
    held[beside.at] = (struct taken){.kind = beside.kind};
    CU(cuCtxGetCurrent, &beside.context);
    return pthread_create(&beside.thread, NULL, take_beside, NULL);
}

static int join(void)
{
    void *result;
    pthread_join(beside.thread, &result);
    return (int)(intptr_t)result;
}

/* together KIND BYTES: how many of 8 threads could take it at the same moment; all is given back */
static void *take_together(void *kind)
{
    struct taken one = {0};
    int good = !CU(cuCtxSetCurrent, beside.context);
    pthread_barrier_wait(&beside_all);
    good = good && !((const struct kind *)kind)->take(&one, beside.bytes);
    pthread_barrier_wait(&beside_all);
    if (good)
        ((const struct kind *)kind)->give(&one);
    return (void *)(intptr_t)good;
}

static int together(const char *name, size_t bytes)
{
    pthread_t list[8];
    void *good;
    int sum = 0;
    beside.bytes = bytes;
    CU(cuCtxGetCurrent, &beside.context);
    pthread_barrier_init(&beside_all, NULL, 8);
    for (int at = 0; at < 8; at++)
        pthread_create(&list[at], NULL, take_together, (void *)(uintptr_t)kind_of(name));
    for (int at = 0; at < 8; at++) {
        pthread_join(list[at], &good);
        sum += (int)(intptr_t)good;
    }
    return sum;
}

/* race BYTES: takes as often as it can */
static void race(size_t bytes)
{
    CUdeviceptr address;
    int count = 0;
    while (!CU(cuMemAlloc_v2, &address, bytes))
        count++;
    printf("%d\n", count);
}

/* pieces LEAST MOST COUNT: linear memory of sizes between the two, until it is out of memory; how many.
 * thin KEEP: frees them again, except each KEEPth (0: all); the last result. */
static CUdeviceptr *pieces;
static size_t pieces_count;

static void take_pieces(size_t least, size_t most, size_t count)
{
    size_t size = least;
    pieces = calloc(count, sizeof *pieces);
    for (pieces_count = 0; pieces_count < count; pieces_count++) {
        if (CU(cuMemAlloc_v2, &pieces[pieces_count], size))
            break;
        size = size + 100003 > most ? least : size + 100003;
    }
    printf("%zu\n", pieces_count);
}

static CUresult thin(size_t keep)
{
    CUresult result = 0;
    for (size_t at = 0; at < pieces_count; at++)
        if (!keep || at % keep) {
            result |= CU(cuMemFree_v2, pieces[at]);
            pieces[at] = 0;
        }
    return result;
}

/* crowd BYTES: pieces of linear memory, taken and given back in several threads at once; how often something
 * went wrong */
static void *one_of_crowd(void *context)
{
    CUdeviceptr taken[16];
    intptr_t bad = CU(cuCtxSetCurrent, context) != 0;
    for (int round = 0; round < 200; round++) {
        for (int at = 0; at < 16; at++)
            bad += CU(cuMemAlloc_v2, &taken[at], thread_bytes) != 0;
        for (int at = 0; at < 16; at++)
            bad += CU(cuMemFree_v2, taken[at]) != 0;
    }
    return (void *)bad;
}

static void crowd(size_t bytes)
{
    pthread_t list[4];
    CUcontext context;
    intptr_t bad = CU(cuCtxGetCurrent, &context), more;
    thread_bytes = bytes;
    for (int at = 0; at < 4; at++)
        bad += pthread_create(&list[at], NULL, one_of_crowd, context) != 0;
    for (int at = 0; at < 4; at++) {
        pthread_join(list[at], (void **)&more);
        bad += more;
    }
    printf("%ld\n", bad);
}

/* fork: the child answers "child" and takes the commands over until it ends; then "parent" */
static void split(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        memset(held, 0, sizeof held);
        printf("child\n");
    } else {
        waitpid(child, NULL, 0);
        printf("parent\n");
    }
}

/* end HOW: without the handlers of exit(), by a signal, or as every program does */
static void end(const char *how)
{
    fflush(stdout);
    if (!strcmp(how, "_exit"))
        _exit(0);
    if (!strcmp(how, "kill"))
        kill(getpid(), SIGKILL);
    exit(0);
}

static uint64_t unused(void)
{
    size_t left = 0, total = 0;
    CU(cuMemGetInfo_v2, &left, &total);
    return left;
}

/* map BYTES: what is unused after each step of a life of physical memory */
static void map(size_t bytes)
{
    CUmemGenericAllocationHandle handle, again;
    CUdeviceptr address;
    CU(cuMemAddressReserve, &address, bytes * 2, (size_t)0, 0ull, 0ull);
    CU(cuMemCreate, &handle, bytes, &PHYSICAL, 0ull);
    CU(cuMemMap, address, bytes, (size_t)0, handle, 0ull);
    CU(cuMemMap, address + bytes, bytes, (size_t)0, handle, 0ull);
    CU(cuMemRelease, handle);
    printf("%lu ", unused()); /* mapped only */
    CU(cuMemRetainAllocationHandle, &again, (void *)(uintptr_t)(address + bytes / 2));
    CU(cuMemUnmap, address, bytes * 2);
    printf("%lu ", unused()); /* a handle only */
    CU(cuMemRelease, again);
    printf("%lu\n", unused());
}

/* tile BYTES: the same for memory that is mapped into a sparse array */
static void tile(size_t bytes)
{
    CUmemGenericAllocationHandle handle;
    struct taken of = {0};
    sparse(&of, bytes);
    CU(cuMemCreate, &handle, bytes, &PHYSICAL, 0ull);
    CUarrayMapInfo info = {.resource.array = (CUarray)of.address,
                           .subresourceType = 1,
                           .memOperationType = 1,
                           .memHandle.memHandle = handle};
    CU(cuMemMapArrayAsync, &info, 1u, (CUstream)NULL);
    CU(cuMemRelease, handle);
    printf("%lu ", unused());
    info.memOperationType = 2;
    CU(cuMemMapArrayAsync, &info, 1u, (CUstream)NULL);
    printf("%lu\n", unused());
    free_array(&of);
}

/* where FORM NAME VERSION FLAGS: which symbol of which library cuGetProcAddress leads to */
static void where(int form, const char *name, int version, uint64_t flags)
{
    void *found = NULL;
    int status = 0;
    Dl_info info = {0};
    CUresult result = form == 4 ? CU(cuGetProcAddress, name, &found, version, flags)
                                : CU(cuGetProcAddress_v2, name, &found, version, flags, &status);
    if (result || !found || !dladdr(found, &info))
        printf("%d none\n", result);
    else
        printf("%s %s\n", info.dli_fname, info.dli_sname);
}

static void report(void)
{
    size_t left = 0, total = 0, all = 0;
    unsigned old_left = 0, old_total = 0, old_all = 0;
    CU(cuMemGetInfo_v2, &left, &total);
    CU(cuMemGetInfo, &old_left, &old_total);
    CU(cuDeviceTotalMem_v2, &all, 0);
    CU(cuDeviceTotalMem, &old_all, 0);
    printf("%zu %zu %zu %u %u %u\n", left, total, all, old_left, old_total, old_all);
}

/* export and import: memory of another process by a handle, in hexadecimal digits */
static void export(int at)
{
    CUipcMemHandle handle;
    printf("%d ", CU(cuIpcGetMemHandle, &handle, held[at].address));
    for (size_t byte = 0; byte < sizeof handle; byte++)
        printf("%02x", handle.reserved[byte]);
    printf("\n");
}

static CUresult import_and_keep(const char *digits, CUdeviceptr *address)
{
    CUipcMemHandle handle;
    for (size_t byte = 0; byte < sizeof handle; byte++)
        sscanf(digits + 2 * byte, "%2hhx", &handle.reserved[byte]);
    return ((CUresult(*)(CUdeviceptr *, CUipcMemHandle, unsigned))find("cuIpcOpenMemHandle_v2"))(
        address, handle, 1);
}

static void import(const char *digits)
{
    CUdeviceptr address = 0;
    CUresult result = import_and_keep(digits, &address);
    printf("%d %lu ", result, unused());
    printf("%d ", CU(cuIpcCloseMemHandle, address));
    printf("%lu\n", unused());
}

static int obey(const char *verb, char *first, char *second, char *third, char *fourth)
{
    if (!strcmp(verb, "begin"))
        printf("%d\n", begin(atoi(first)));
    else if (!strcmp(verb, "take"))
        take(first, strtoull(second, NULL, 10));
    else if (!strcmp(verb, "give"))
        printf("%d\n", give(atoi(first)));
    else if (!strcmp(verb, "cycle"))
        cycle(first, strtoull(second, NULL, 10));
    else if (!strcmp(verb, "churn"))
        churn(strtoull(first, NULL, 10));
    else if (!strcmp(verb, "threads"))
        threads(strtoull(first, NULL, 10));
    else if (!strcmp(verb, "start"))
        printf("%d\n", start(first, strtoull(second, NULL, 10)));
    else if (!strcmp(verb, "join"))
        printf("%d\n", join());
    else if (!strcmp(verb, "together"))
        printf("%d\n", together(first, strtoull(second, NULL, 10)));
    else if (!strcmp(verb, "race"))
        race(strtoull(first, NULL, 10));
    else if (!strcmp(verb, "pieces"))
        take_pieces(strtoull(first, NULL, 10), strtoull(second, NULL, 10), strtoull(third, NULL, 10));
    else if (!strcmp(verb, "thin"))
        printf("%d\n", thin(strtoull(first, NULL, 10)));
    else if (!strcmp(verb, "crowd"))
        crowd(strtoull(first, NULL, 10));
    else if (!strcmp(verb, "unused"))
        printf("%lu\n", unused());
    else if (!strcmp(verb, "report"))
        report();
    else if (!strcmp(verb, "map"))
        map(strtoull(first, NULL, 10));
    else if (!strcmp(verb, "tile"))
        tile(strtoull(first, NULL, 10));
    else if (!strcmp(verb, "where"))
        where(atoi(first), second, atoi(third), strtoull(fourth, NULL, 10));
    else if (!strcmp(verb, "export"))
        export(atoi(first));
    else if (!strcmp(verb, "import"))
        import(first);
    else if (!strcmp(verb, "import_and_keep"))
        printf("%d\n", import_and_keep(first, &(CUdeviceptr){0}));
    else if (!strcmp(verb, "reset"))
        printf("%d\n", CU(cuDevicePrimaryCtxReset_v2, 0));
    else if (!strcmp(verb, "pause")) /* the driver, in each allocation from now on */
        printf("%d\n", setenv("STANDIN_PAUSE_MS", first, 1));
    else if (!strcmp(verb, "closefrom"))
        printf("%d\n", (closefrom(3), 0));
    else if (!strcmp(verb, "fork"))
        split();
    else if (!strcmp(verb, "end"))
        end(first);
    else if (!strcmp(verb, "children")) /* -1: none */
        printf("%d\n", waitpid(-1, NULL, WNOHANG));
    else
        return 0;
    fflush(stdout);
    return 1;
}

int main(int count, char **words)
{
    char line[512], verb[20], rest[4][160];
    library = count == 2 ? dlopen(words[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) {
        fprintf(stderr, "%s\n", count == 2 ? dlerror() : "cuda_client LIBRARY");
        return 2;
    }
    while (fgets(line, sizeof line, stdin)) {
        memset(rest, 0, sizeof rest);
        if (sscanf(line, "%19s %159s %159s %159s %159s", verb, rest[0], rest[1], rest[2], rest[3]) < 1 ||
            !obey(verb, rest[0], rest[1], rest[2], rest[3]))
            return 0;
    }
    return 0;
}
