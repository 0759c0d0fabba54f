/* Functions that the driver has and the stand-in does nothing for: they say so. CUDA's runtime library looks all of
 * them up when it starts, and takes a driver without them for too old. Each has an address of its own. */
#define _GNU_SOURCE
#include "driver.h"

static __attribute__((used)) CUresult not_supported(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

#define UNSUPPORTED(X) \
    X(cuArray3DGetDescriptor) X(cuArrayGetDescriptor) X(cuArrayGetMemoryRequirements)              \
    X(cuArrayGetPlane) X(cuArrayGetSparseProperties) X(cuCtxDetach) X(cuCtxDisablePeerAccess)      \
    X(cuCtxEnablePeerAccess) X(cuCtxGetCacheConfig) X(cuCtxGetId) X(cuCtxGetLimit)                 \
    X(cuCtxGetSharedMemConfig) X(cuCtxResetPersistingL2Cache) X(cuCtxSetCacheConfig)               \
    X(cuCtxSetSharedMemConfig) X(cuDestroyExternalSemaphore) X(cuDevSmResourceSplit)               \
    X(cuDeviceGetByPCIBusId) X(cuDeviceGetHostAtomicCapabilities)                                  \
    X(cuDeviceGetNvSciSyncAttributes) X(cuDeviceGetP2PAtomicCapabilities)                          \
    X(cuDeviceGetP2PAttribute) X(cuDeviceGetTexture1DLinearMaxWidth)                               \
    X(cuDeviceRegisterAsyncNotification) X(cuDeviceUnregisterAsyncNotification)                    \
    X(cuEGLStreamConsumerAcquireFrame) X(cuEGLStreamConsumerConnect)                               \
    X(cuEGLStreamConsumerConnectWithFlags) X(cuEGLStreamConsumerDisconnect)                        \
    X(cuEGLStreamConsumerReleaseFrame) X(cuEGLStreamProducerConnect)                               \
    X(cuEGLStreamProducerDisconnect) X(cuEGLStreamProducerPresentFrame)                            \
    X(cuEGLStreamProducerReturnFrame) X(cuExternalMemoryGetMappedMipmappedArray)                   \
    X(cuFlushGPUDirectRDMAWrites) X(cuFuncGetAttribute) X(cuFuncGetName) X(cuFuncGetParamInfo)     \
    X(cuFuncSetAttribute) X(cuFuncSetCacheConfig) X(cuFuncSetSharedMemConfig) X(cuGLCtxCreate)     \
    X(cuGLGetDevices) X(cuGLInit) X(cuGLMapBufferObject) X(cuGLMapBufferObjectAsync)               \
    X(cuGLRegisterBufferObject) X(cuGLSetBufferObjectMapFlags) X(cuGLUnmapBufferObject)            \
    X(cuGLUnmapBufferObjectAsync) X(cuGLUnregisterBufferObject) X(cuGraphAddDependencies)          \
    X(cuGraphAddEventRecordNode) X(cuGraphAddEventWaitNode)                                        \
    X(cuGraphAddExternalSemaphoresSignalNode) X(cuGraphAddExternalSemaphoresWaitNode)              \
    X(cuGraphAddHostNode) X(cuGraphAddMemcpyNode) X(cuGraphAddMemsetNode) X(cuGraphClone)          \
    X(cuGraphConditionalHandleCreate) X(cuGraphDebugDotPrint) X(cuGraphDestroyNode)                \
    X(cuGraphEventRecordNodeGetEvent) X(cuGraphEventRecordNodeSetEvent)                            \
    X(cuGraphEventWaitNodeGetEvent) X(cuGraphEventWaitNodeSetEvent)                                \
    X(cuGraphExecChildGraphNodeSetParams) X(cuGraphExecEventRecordNodeSetEvent)                    \
    X(cuGraphExecEventWaitNodeSetEvent) X(cuGraphExecExternalSemaphoresSignalNodeSetParams)        \
    X(cuGraphExecExternalSemaphoresWaitNodeSetParams) X(cuGraphExecGetFlags) X(cuGraphExecGetId)   \
    X(cuGraphExecHostNodeSetParams) X(cuGraphExecKernelNodeSetParams)                              \
    X(cuGraphExecMemcpyNodeSetParams) X(cuGraphExecMemsetNodeSetParams)                            \
    X(cuGraphExecNodeSetParams) X(cuGraphExecUpdate)                                               \
    X(cuGraphExternalSemaphoresSignalNodeGetParams)                                                \
    X(cuGraphExternalSemaphoresSignalNodeSetParams) X(cuGraphExternalSemaphoresWaitNodeGetParams)  \
    X(cuGraphExternalSemaphoresWaitNodeSetParams) X(cuGraphGetEdges) X(cuGraphGetId)               \
    X(cuGraphGetRootNodes) X(cuGraphHostNodeGetParams) X(cuGraphHostNodeSetParams)                 \
    X(cuGraphKernelNodeCopyAttributes) X(cuGraphKernelNodeGetAttribute)                            \
    X(cuGraphKernelNodeGetParams) X(cuGraphKernelNodeSetAttribute) X(cuGraphKernelNodeSetParams)   \
    X(cuGraphMemFreeNodeGetParams) X(cuGraphMemcpyNodeGetParams) X(cuGraphMemcpyNodeSetParams)     \
    X(cuGraphMemsetNodeGetParams) X(cuGraphMemsetNodeSetParams) X(cuGraphNodeFindInClone)          \
    X(cuGraphNodeGetContainingGraph) X(cuGraphNodeGetDependencies) X(cuGraphNodeGetDependentNodes) \
    X(cuGraphNodeGetEnabled) X(cuGraphNodeGetLocalId) X(cuGraphNodeGetToolsId)                     \
    X(cuGraphNodeSetEnabled) X(cuGraphNodeSetParams) X(cuGraphReleaseUserObject)                   \
    X(cuGraphRemoveDependencies) X(cuGraphRetainUserObject) X(cuGraphicsEGLRegisterImage)          \
    X(cuGraphicsGLRegisterBuffer) X(cuGraphicsGLRegisterImage) X(cuGraphicsMapResources)           \
    X(cuGraphicsResourceGetMappedEglFrame) X(cuGraphicsResourceGetMappedMipmappedArray)            \
    X(cuGraphicsResourceGetMappedPointer) X(cuGraphicsResourceSetMapFlags)                         \
    X(cuGraphicsSubResourceGetMappedArray) X(cuGraphicsUnmapResources)                             \
    X(cuGraphicsUnregisterResource) X(cuGraphicsVDPAURegisterOutputSurface)                        \
    X(cuGraphicsVDPAURegisterVideoSurface) X(cuGreenCtxGetId) X(cuImportExternalSemaphore)         \
    X(cuIpcGetEventHandle) X(cuIpcOpenEventHandle) X(cuKernelGetAttribute) X(cuKernelGetName)      \
    X(cuKernelGetParamInfo) X(cuKernelSetAttribute) X(cuKernelSetCacheConfig) X(cuLaunchHostFunc)  \
    X(cuLibraryEnumerateKernels) X(cuLibraryGetGlobal) X(cuLibraryGetKernelCount)                  \
    X(cuLibraryGetManaged) X(cuLibraryGetModule) X(cuLibraryGetUnifiedFunction)                    \
    X(cuLibraryLoadFromFile) X(cuLinkAddData) X(cuLinkAddFile) X(cuLinkComplete) X(cuLinkCreate)   \
    X(cuLinkDestroy) X(cuLogsCurrent) X(cuLogsDumpToFile) X(cuLogsDumpToMemory)                    \
    X(cuLogsRegisterCallback) X(cuLogsUnregisterCallback) X(cuMemAdvise)                           \
    X(cuMemDiscardAndPrefetchBatchAsync) X(cuMemDiscardBatchAsync) X(cuMemGetAddressRange)         \
    X(cuMemHostGetDevicePointer) X(cuMemHostGetFlags) X(cuMemPoolGetAccess) X(cuMemPrefetchAsync)  \
    X(cuMemPrefetchBatchAsync) X(cuMemRangeGetAttribute) X(cuMemRangeGetAttributes) X(cuMemcpy)    \
    X(cuMemcpy2DAsync) X(cuMemcpy2DUnaligned) X(cuMemcpy3D) X(cuMemcpy3DAsync)                     \
    X(cuMemcpy3DBatchAsync) X(cuMemcpy3DPeer) X(cuMemcpy3DPeerAsync) X(cuMemcpyAsync)              \
    X(cuMemcpyBatchAsync) X(cuMemcpyDtoD) X(cuMemcpyDtoDAsync) X(cuMemcpyDtoH)                     \
    X(cuMemcpyDtoHAsync) X(cuMemcpyHtoD) X(cuMemcpyHtoDAsync) X(cuMemcpyPeer) X(cuMemcpyPeerAsync) \
    X(cuMemsetD2D8) X(cuMemsetD2D8Async) X(cuMemsetD8Async)                          \
    X(cuMipmappedArrayGetLevel) X(cuMipmappedArrayGetMemoryRequirements)                           \
    X(cuMipmappedArrayGetSparseProperties) X(cuModuleGetGlobal) X(cuModuleGetSurfRef)              \
    X(cuModuleGetTexRef) X(cuModuleLoad) X(cuModuleLoadFatBinary)                                  \
    X(cuOccupancyAvailableDynamicSMemPerBlock)                                                     \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) X(cuOccupancyMaxActiveClusters)        \
    X(cuOccupancyMaxPotentialClusterSize) X(cuPointerGetAttributes) X(cuProfilerInitialize)        \
    X(cuProfilerStart) X(cuProfilerStop) X(cuSignalExternalSemaphoresAsync) X(cuStreamAddCallback) \
    X(cuStreamAttachMemAsync) X(cuStreamBatchMemOp) X(cuStreamBeginCaptureToGraph)                 \
    X(cuStreamCopyAttributes) X(cuStreamGetAttribute) X(cuStreamGetCaptureInfo)                    \
    X(cuStreamGetDevResource) X(cuStreamGetDevice) X(cuStreamGetId) X(cuStreamSetAttribute)        \
    X(cuStreamUpdateCaptureDependencies) X(cuStreamWaitValue32) X(cuStreamWaitValue64)             \
    X(cuStreamWriteValue32) X(cuStreamWriteValue64) X(cuSurfObjectCreate) X(cuSurfObjectDestroy)   \
    X(cuSurfObjectGetResourceDesc) X(cuTexObjectCreate) X(cuTexObjectDestroy)                      \
    X(cuTexObjectGetResourceDesc) X(cuTexObjectGetResourceViewDesc) X(cuTexObjectGetTextureDesc)   \
    X(cuThreadExchangeStreamCaptureMode) X(cuUserObjectCreate) X(cuUserObjectRelease)              \
    X(cuUserObjectRetain) X(cuVDPAUCtxCreate) X(cuVDPAUGetDevice) X(cuWaitExternalSemaphoresAsync)

#define X(name) ALIAS(name, not_supported);
UNSUPPORTED(X)
