/* Executable graphs, and the memory that the driver keeps for them. */
#ifndef SLIPWAY_CUDA_GRAPHS_H
#define SLIPWAY_CUDA_GRAPHS_H

#include "cuda_wrap.h"

/* Sets the charges for graphs to the memory that the driver keeps for them. */
void graphs_sync(void);
/* Frees what it keeps unused. */
void graphs_trim(void);
void graphs_forget(void); /* in a child, which has none */

/* A graph's memory is taken when it is launched, so it is charged before. Returns CUDA_SUCCESS or
 * CUDA_ERROR_OUT_OF_MEMORY; graph_launch_finish must follow every success, whatever the launch
 * returned. */
CUresult graph_launch_prepare(CUgraphExec executable);
void graph_launch_finish(CUgraphExec executable);

extern const struct hook graph_hooks[];

#endif
