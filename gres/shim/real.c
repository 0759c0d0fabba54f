/* Finds the functions of the real library, which the dynamic linker has loaded already. */
#include "real.h"

#include "shim.h"

#include <dlfcn.h>
#include <stddef.h>

static const char real_path[] = SLIPWAY_DRIVER "/" SLIPWAY_REAL; /* SLIPWAY_REAL: see the Makefile */

static void *real_library(void)
{
    static void *library; /* every dlopen() returns the same handle, so a race is harmless */
    void *found = __atomic_load_n(&library, __ATOMIC_ACQUIRE);
    if (!found) {
        found = dlopen(real_path, RTLD_LAZY | RTLD_LOCAL);
        __atomic_store_n(&library, found, __ATOMIC_RELEASE);
    }
    return found;
}

void *real_function(const char *name)
{
    void *library = real_library();
    return library ? dlsym(library, name) : NULL;
}

static int not_supported(void)
{
    return SLIPWAY_NOT_SUPPORTED;
}

void *real_function_or_error(const char *name)
{
    void *found = real_function(name);
    return found ? found : (void *)not_supported;
}

void real_fill(const struct hook *table)
{
    for (; table->name; table++)
        *table->real = real_function_or_error(table->name);
}
