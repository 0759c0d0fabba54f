/* Which exported function a look-up by name and version leads to. */
#ifndef SLIPWAY_CUDA_VERSIONS_H
#define SLIPWAY_CUDA_VERSIONS_H

#include <stdint.h>

#define NEWEST_KNOWN_VERSION 13050 /* no wrapped function has a newer form up to this version of CUDA */
#define LONGEST_SYMBOL 64

/* The symbol for a wrapped function, such as cuMemAlloc_v2 for cuMemAlloc in version 3020 or newer. Writes it
 * to `symbol`, of LONGEST_SYMBOL bytes, as with one default stream for the program; 0, or -1 if there is
 * none for that version. */
int version_symbol(const char *name, int version, char *symbol);

#endif
