/* Types and numbers of CUDA's driver API that the stand-in needs: facts of its binary interface,
 * written down once more and not taken from the shim's own declarations, so that a mistake in one
 * of the two is found by the tests. */
#ifndef STANDIN_CUDA_H
#define STANDIN_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
} CUresult;

typedef unsigned long long CUdeviceptr;
typedef unsigned int CUdeviceptr_v1;
typedef int CUdevice;
typedef struct context *CUcontext;
typedef struct stream *CUstream;
typedef struct event *CUevent;
typedef struct pool *CUmemoryPool;
typedef struct array *CUarray;
typedef struct array *CUmipmappedArray;
typedef struct graph *CUgraph;
typedef struct node *CUgraphNode;
typedef struct exec *CUgraphExec;
typedef struct external *CUexternalMemory;
typedef void *CUmodule, *CUlibrary;
typedef struct kernel *CUfunction;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct { unsigned char bytes[16]; } CUuuid;
typedef struct { unsigned char reserved[64]; } CUipcMemHandle, CUmemPoolPtrExportData;

enum { /* CUmemLocationType */
    LOCATION_DEVICE = 1,
    LOCATION_HOST = 2,
    LOCATION_HOST_NUMA = 3,
    LOCATION_HOST_NUMA_CURRENT = 4,
};

typedef struct { int type; int id; } CUmemLocation;

typedef struct {
    int type;
    int requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType;
        unsigned char gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;

typedef struct { CUmemLocation location; int flags; } CUmemAccessDesc;

typedef struct {
    int allocType;
    int handleTypes;
    CUmemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
} CUmemPoolProps;

enum { /* CUmemPool_attribute */
    POOL_RELEASE_THRESHOLD = 4,
    POOL_RESERVED_CURRENT,
    POOL_RESERVED_HIGH,
    POOL_USED_CURRENT,
    POOL_USED_HIGH,
};

typedef struct { size_t Width, Height; int Format; unsigned NumChannels; } CUDA_ARRAY_DESCRIPTOR;
typedef struct { unsigned Width, Height; int Format; unsigned NumChannels; } CUDA_ARRAY_DESCRIPTOR_v1;
typedef struct {
    size_t Width, Height, Depth;
    int Format;
    unsigned NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR;
typedef struct {
    unsigned Width, Height, Depth;
    int Format;
    unsigned NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR_v1;

typedef struct {
    int resourceType;
    union { CUmipmappedArray mipmap; CUarray array; } resource;
    int subresourceType;
    union {
        struct {
            unsigned level, layer, offsetX, offsetY, offsetZ, extentWidth, extentHeight, extentDepth;
        } sparseLevel;
        struct { unsigned layer; unsigned long long offset, size; } miptail;
    } subresource;
    int memOperationType;
    int memHandleType;
    union { CUmemGenericAllocationHandle memHandle; } memHandle;
    unsigned long long offset;
    unsigned deviceBitMask, flags;
    unsigned reserved[2];
} CUarrayMapInfo;

typedef struct {
    CUmemPoolProps poolProps;
    const CUmemAccessDesc *accessDescs;
    size_t accessDescCount;
    size_t bytesize;
    CUdeviceptr dptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;

typedef struct {
    CUfunction func;
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    void **kernelParams;
    void **extra;
} CUDA_KERNEL_NODE_PARAMS; /* version 2 appends a kernel and a context */

enum { NODE_KERNEL = 0, NODE_GRAPH = 4, NODE_EMPTY = 5, NODE_MEM_ALLOC = 10, NODE_MEM_FREE = 11 };

typedef struct {
    int type;
    int reserved0[3];
    union {
        long long reserved1[29];
        CUDA_KERNEL_NODE_PARAMS kernel;
        CUDA_MEM_ALLOC_NODE_PARAMS alloc;
        struct { CUdeviceptr dptr; } free;
    };
    long long reserved2;
} CUgraphNodeParams;

typedef struct { unsigned char from_port, to_port, type, reserved[5]; } CUgraphEdgeData;

typedef struct {
    unsigned long long flags;
    CUstream hUploadStream;
    CUgraphNode hErrNode_out;
    int result_out;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

enum { GRAPH_USED_CURRENT, GRAPH_USED_HIGH, GRAPH_RESERVED_CURRENT, GRAPH_RESERVED_HIGH };

typedef struct {
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    void *attrs;
    unsigned numAttrs;
} CUlaunchConfig;

typedef struct {
    CUfunction function;
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    void **kernelParams;
} CUDA_LAUNCH_PARAMS;

typedef struct {
    int type;
    union { int fd; struct { void *handle; const void *name; } win32; const void *nvSciBufObject; } handle;
    unsigned long long size;
    unsigned flags;
    unsigned reserved[16];
} CUDA_EXTERNAL_MEMORY_HANDLE_DESC;

typedef struct {
    unsigned long long offset, size;
    unsigned flags;
    unsigned reserved[16];
} CUDA_EXTERNAL_MEMORY_BUFFER_DESC;

#define EXPORT __attribute__((visibility("default")))
/* The same function under another name, at an address of its own: what looks functions up by address
 * (the shim does) must be able to tell them apart, as it is in the real library. */
#if defined __x86_64__
#define STANDIN_JUMP "jmp "
#define STANDIN_PLT "@PLT"
#else
#define STANDIN_JUMP "b "
#define STANDIN_PLT ""
#endif
#define ALIAS(name, of)                                                                            \
    EXPORT __typeof__(of) name;                                                                    \
    __asm__(".pushsection .text\n.globl " #name "\n.type " #name ", %function\n" #name ": "        \
            STANDIN_JUMP #of STANDIN_PLT "\n.size " #name ", .-" #name "\n.popsection")
#define PTSZ(name) ALIAS(name##_ptsz, name)

#endif
