/* How a function of libcuda is wrapped.
 *
 * WRAP(name, parameters) { body } defines the exported function `name` and `real_name`, the driver's;
 * HOOK(name) is its line in the table of its file. */
#ifndef SLIPWAY_CUDA_WRAP_H
#define SLIPWAY_CUDA_WRAP_H

#include "cuda_abi.h"
#include "real.h"

#define EXPORT __attribute__((visibility("default")))
#define WRAP(name, ...)                                                                             \
    static CUresult (*real_##name)(__VA_ARGS__);                                                    \
    EXPORT CUresult name(__VA_ARGS__);                                                              \
    EXPORT CUresult name(__VA_ARGS__)
/* A function of the driver that is called, but not wrapped. */
#define NEEDS(name, ...) static CUresult (*real_##name)(__VA_ARGS__)
#define HOOK(name) {#name, (void *)(name), (void **)&real_##name}
#define NEEDED(name) {#name, NULL, (void **)&real_##name}
#define HOOKS_END {NULL, NULL, NULL}

#endif
