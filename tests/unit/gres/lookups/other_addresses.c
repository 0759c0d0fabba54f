/* A driver whose cuGetProcAddress answers other addresses than it exports, in front of the stand-in:
 *   COPY    those of a second copy of the library, whose symbols dladdr() can name
 *   else    jumps without a name, one for each function */
#define _GNU_SOURCE
#include "cuda.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

static void *from(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    return handle ? dlsym(handle, name) : NULL;
}

#ifdef COPY
static void *other_address(void *function)
{
    Dl_info info;
    return dladdr(function, &info) && info.dli_sname ? from(COPY, info.dli_sname) : function;
}
#else
static void *other_address(void *function)
{
    static void *known[4096];
    static unsigned char *code;
    if (!code)
        code = mmap(NULL, sizeof known * 2, PROT_READ | PROT_WRITE | PROT_EXEC,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int at = 0;
    while (known[at] && known[at] != function)
        at++;
    known[at] = function;
#if defined(__x86_64__)
    static const unsigned char jump[] = {0xff, 0x25, 2, 0, 0, 0, 0, 0}; /* jmp *2(%rip) */
#else
    static const unsigned int jump[] = {0x58000050, 0xd61f0200}; /* ldr x16, 8; br x16 */
#endif
    memcpy(code + 16 * at, jump, 8);
    memcpy(code + 16 * at + 8, &function, 8);
    __builtin___clear_cache((char *)code + 16 * at, (char *)code + 16 * at + 16);
    return code + 16 * at;
}
#endif

/* From version 14000 on it has a new form of cuMemAlloc. */
static int newer(void) { return 0; }

EXPORT CUresult cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status)
{
    CUresult (*next)(const char *, void **, int, uint64_t, int *) = from(STANDIN, "cuGetProcAddress_v2");
    const int newest = version >= 14000;
    CUresult result = next(name, found, version > 13000 ? 13000 : version, flags, status);
    if (!result && *found)
        *found = newest && !strcmp(name, "cuMemAlloc") ? (void *)newer : other_address(*found);
    return result;
}

EXPORT CUresult cuGetProcAddress(const char *name, void **found, int version, uint64_t flags)
{
    int status;
    CUresult result = cuGetProcAddress_v2(name, found, version, flags, &status);
    return result ? result : *found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
