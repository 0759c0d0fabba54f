/* Executable graphs, and the memory that the driver keeps for them. */
#ifndef SLIPWAY_CUDA_GRAPHS_H
#define SLIPWAY_CUDA_GRAPHS_H

#include "cuda_wrap.h"

/* Sets the charges for graphs to the memory that the driver keeps for them. */
void graphs_sync(void);
/* Frees what it keeps unused. */
void graphs_trim(void);
void graphs_forget(void); /* in a child, which has none */

/* Launches or uploads a graph by the driver's function. Its memory is taken then, so it is charged before:
 * CUDA_ERROR_OUT_OF_MEMORY, without the call, if the slice has no room. `function` is the name for the
 * trace. */
CUresult graph_launch(const char *function, CUresult (*real)(CUgraphExec, CUstream),
                      CUgraphExec executable, CUstream stream);

extern const struct hook graph_hooks[];

#endif
