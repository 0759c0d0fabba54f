/* The functions of the real library, and the tables of those that are wrapped. */
#ifndef SLIPWAY_REAL_H
#define SLIPWAY_REAL_H

/* One wrapped function. The tables of libcuda's wrappers are searched by name for dlsym-like look-ups, and
 * by the real function's address after cuGetProcAddress, so that no version is ever guessed. Each table
 * ends with a null name. */
struct hook {
    const char *name;  /* as exported by the real library, such as "cuMemAlloc_v2" */
    void *wrapper;     /* NULL: only called by the shim itself, not wrapped */
    void **real;       /* filled in before the wrapper is ever called */
};

/* NULL if this driver has no function of that name. */
void *real_function(const char *name);
/* Instead of NULL, one that returns the library's code for "not supported". */
void *real_function_or_error(const char *name);
/* Fills in the real functions of a table. Those that this driver lacks return "not supported". */
void real_fill(const struct hook *table);

#endif
