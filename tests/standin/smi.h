/* What the parts of the stand-in nvidia-smi share. */
#ifndef STANDIN_SMI_H
#define STANDIN_SMI_H

#include "nvml.h"

#include <stddef.h>

struct shown {
    nvmlDevice_t device;
    char name[96], uuid[96];
    unsigned index, celsius, milliwatts, most_milliwatts;
    int persistence;
    nvmlMemory_v2_t memory;
    nvmlUtilization_t use;
};

/* smi_nvml.c */
void *smi_need(const char *name); /* a function of libnvidia-ml.so.1, or the end of the program */
#define CALL(name, ...) ((nvmlReturn_t(*)())smi_need(#name))(__VA_ARGS__)
unsigned smi_open(void); /* the number of GPUs */
struct shown smi_look(unsigned index);
unsigned long long smi_mib(unsigned long long bytes);

/* smi_processes.c */
int smi_table_processes(const struct shown *gpu);
int smi_pmon(unsigned count);
int smi_query_apps(unsigned count, const char *fields, const char *format);
void smi_report_processes(const struct shown *gpu);

/* smi_queries.c */
void smi_header(const char *fields);
int smi_query(unsigned count, const char *fields, const char *format);
int smi_report(unsigned count);

#endif
