/* The stand-in nvidia-smi's lists of processes. As the real one it takes them from a private table of
 * the driver's and not from NVML's public functions, so whatever replaces those is not asked. */
#define _GNU_SOURCE
#include "private_tables.h"
#include "smi.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 256

static unsigned processes(const struct shown *gpu, struct private_process *found)
{
    const struct private_table *table;
    unsigned count = MOST;
    if (CALL(nvmlInternalGetExportTable, (const void **)&table, STANDIN_PRIVATE_TABLE)) {
        fputs("NVIDIA-SMI has failed because its private functions are missing.\n", stderr);
        exit(9);
    }
    return table->processes(gpu->device, &count, found) ? 0 : count;
}

static const char *process_name(unsigned pid, char *text, size_t length)
{
    if (CALL(nvmlSystemGetProcessName, pid, text, (unsigned)length))
        snprintf(text, length, "[Not Found]");
    return text;
}

int smi_table_processes(const struct shown *gpu)
{
    struct private_process found[MOST];
    char name[256];
    const unsigned count = processes(gpu, found);
    for (unsigned i = 0; i < count; i++)
        printf("| %4u %12u %6s   %-46.46s %7lluMiB    |\n", gpu->index, found[i].pid, "C",
               process_name(found[i].pid, name, sizeof name), smi_mib(found[i].bytes));
    return (int)count;
}

void smi_report_processes(const struct shown *gpu)
{
    struct private_process found[MOST];
    char name[256];
    const unsigned count = processes(gpu, found);
    printf("    %-34s: %s\n", "Processes", count ? "" : "None");
    for (unsigned i = 0; i < count; i++) {
        printf("        %-30s: %u\n", "Process ID", found[i].pid);
        printf("            %-26s: %s\n", "Type", "C");
        printf("            %-26s: %s\n", "Name", process_name(found[i].pid, name, sizeof name));
        printf("            %-26s: %llu MiB\n", "Used GPU Memory", smi_mib(found[i].bytes));
    }
}

/* One look at each process (pmon -c 1): the real one repeats it. */
int smi_pmon(unsigned count)
{
    puts("# gpu         pid   type     sm    mem    enc    dec    jpg    ofa    command \n"
         "# Idx           #    C/G      %      %      %      %      %      %    name ");
    for (unsigned i = 0; i < count; i++) {
        const struct shown gpu = smi_look(i);
        struct private_process found[MOST];
        char name[256], percent[16];
        const unsigned number = processes(&gpu, found);
        if (!number)
            printf("%5u           -     -      -      -      -      -      -      -    -              \n", i);
        for (unsigned k = 0; k < number; k++) {
            snprintf(percent, sizeof percent, found[k].percent ? "%u" : "-", found[k].percent);
            printf("%5u  %10u     C %6s      -      -      -      -      -    %-14.14s \n", i, found[k].pid,
                   percent, process_name(found[k].pid, name, sizeof name));
        }
    }
    return 0;
}

static bool show_field(const char *field, const struct shown *gpu, const struct private_process *process,
                       bool units)
{
    char name[256];
    if (strcmp(field, "pid") == 0)
        printf("%u", process->pid);
    else if (strcmp(field, "used_memory") == 0 || strcmp(field, "used_gpu_memory") == 0)
        printf("%llu%s", smi_mib(process->bytes), units ? " MiB" : "");
    else if (strcmp(field, "process_name") == 0 || strcmp(field, "name") == 0)
        printf("%s", process_name(process->pid, name, sizeof name));
    else if (strcmp(field, "gpu_uuid") == 0)
        printf("%s", gpu->uuid);
    else
        return false;
    return true;
}

int smi_query_apps(unsigned count, const char *fields, const char *format)
{
    if (!strstr(format, "noheader"))
        smi_header(fields);
    for (unsigned i = 0; i < count; i++) {
        const struct shown gpu = smi_look(i);
        struct private_process found[MOST];
        const unsigned number = processes(&gpu, found);
        for (unsigned k = 0; k < number; k++) {
            char *words = strdup(fields), *rest = words;
            for (char *field; (field = strsep(&rest, ","));) {
                field += strspn(field, " ");
                if (!show_field(field, &gpu, &found[k], !strstr(format, "nounits"))) {
                    printf("Field \"%s\" is not a valid field to query.\n", field);
                    return 2;
                }
                fputs(rest ? ", " : "\n", stdout);
            }
            free(words);
        }
    }
    return 0;
}
