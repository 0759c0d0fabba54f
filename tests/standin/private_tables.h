/* What the stand-in nvidia-smi gets past NVML's public functions, as the real one does: the driver's own
 * lists of processes, which nothing in front of libnvidia-ml.so.1 sees. The real tables are not known,
 * so this one has a number of its own. */
#ifndef STANDIN_PRIVATE_TABLES_H
#define STANDIN_PRIVATE_TABLES_H

#include "nvml.h"

#define STANDIN_PRIVATE_TABLE "standin-process"

struct private_process {
    unsigned pid, percent;
    unsigned long long bytes;
};

struct private_table {
    unsigned long size; /* in bytes, so that a newer nvidia-smi recognises an older table */
    nvmlReturn_t (*processes)(nvmlDevice_t device, unsigned *count, struct private_process *found);
};

#endif
