#include "cuda_shim.h"
const struct hook array_hooks[] = {HOOKS_END};
