#include "cuda_shim.h"
const struct hook vmm_hooks[] = {HOOKS_END};
