/* The GPU's memory as reported to programs. */
#ifndef SLIPWAY_CUDA_REPORT_H
#define SLIPWAY_CUDA_REPORT_H

#include "real.h"

extern const struct hook report_hooks[];

#endif
