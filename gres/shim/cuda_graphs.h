/* Executable graphs, and the memory that the driver keeps for them. */
#ifndef SLIPWAY_CUDA_GRAPHS_H
#define SLIPWAY_CUDA_GRAPHS_H

#include "cuda_wrap.h"

/* The charges for graphs become what the driver says that it keeps for them. */
void graphs_sync(void);
/* Gives back what it keeps and does not use. */
void graphs_trim(void);
void graphs_forget(void); /* in a child, which has none */

/* The memory that a graph allocates is taken when it is launched, so it is charged before. Answers
 * CUDA_SUCCESS or CUDA_ERROR_OUT_OF_MEMORY; graph_launch_finish follows every success, whatever the
 * launch answered. */
CUresult graph_launch_prepare(CUgraphExec executable);
void graph_launch_finish(CUgraphExec executable);

extern const struct hook graph_hooks[];

#endif
