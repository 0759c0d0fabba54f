/* How a function of libnvidia-ml is wrapped: as in cuda_wrap.h, with one table per file.
 *
 * WRAP(name, parameters) { body } defines the exported function `name` and `real_name`, the driver's;
 * HOOK(name) is its line in the file's table, HOOKS(file, lines), which is filled in when the library is
 * loaded. */
#ifndef SLIPWAY_NVML_WRAP_H
#define SLIPWAY_NVML_WRAP_H

#include "nvml_abi.h"
#include "real.h"

#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))
#define WRAP(name, ...)                                                                             \
    static nvmlReturn_t (*real_##name)(__VA_ARGS__);                                                \
    EXPORT nvmlReturn_t name(__VA_ARGS__);                                                          \
    EXPORT nvmlReturn_t name(__VA_ARGS__)
/* A function of the driver that is called, but not wrapped. */
#define NEEDS(name, ...) static nvmlReturn_t (*real_##name)(__VA_ARGS__)
#define HOOK(name) {#name, (void *)(name), (void **)&real_##name}
#define NEEDED(name) {#name, NULL, (void **)&real_##name}
#define HOOKS(file, ...)                                                                            \
    static const struct hook file##_hooks[] = {__VA_ARGS__, {NULL, NULL, NULL}};                    \
    __attribute__((constructor)) static void file##_fill_hooks(void)                                \
    {                                                                                               \
        real_fill(file##_hooks);                                                                    \
    }

#endif
