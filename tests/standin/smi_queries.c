/* The stand-in nvidia-smi's figures of GPUs: --query-gpu and -q, by NVML's public functions. */
#define _GNU_SOURCE
#include "smi.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool show_memory(const char *field, const struct shown *gpu, bool units)
{
    const struct { const char *field; unsigned long long bytes; } known[] = {
        {"memory.total", gpu->memory.total},
        {"memory.reserved", gpu->memory.reserved},
        {"memory.used", gpu->memory.used},
        {"memory.free", gpu->memory.free},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(field, known[i].field) == 0) {
            printf("%llu%s", smi_mib(known[i].bytes), units ? " MiB" : "");
            return true;
        }
    return false;
}

static bool show_field(const char *field, const struct shown *gpu, bool units)
{
    char text[96] = "";
    if (strcmp(field, "index") == 0)
        printf("%u", gpu->index);
    else if (strcmp(field, "name") == 0 || strcmp(field, "gpu_name") == 0)
        printf("%s", gpu->name);
    else if (strcmp(field, "uuid") == 0 || strcmp(field, "gpu_uuid") == 0)
        printf("%s", gpu->uuid);
    else if (strcmp(field, "driver_version") == 0) {
        CALL(nvmlSystemGetDriverVersion, text, (unsigned)sizeof text);
        printf("%s", text);
    } else if (strcmp(field, "persistence_mode") == 0)
        printf("%s", gpu->persistence ? "Enabled" : "Disabled");
    else if (strcmp(field, "utilization.gpu") == 0)
        printf("%u%s", gpu->use.gpu, units ? " %" : "");
    else if (strcmp(field, "temperature.gpu") == 0)
        printf("%u", gpu->celsius);
    else if (strcmp(field, "power.draw") == 0)
        printf("%u.00%s", gpu->milliwatts / 1000, units ? " W" : "");
    else
        return show_memory(field, gpu, units);
    return true;
}

/* As the real one: "memory.used [MiB], utilization.gpu [%]", with or without units in the lines. */
void smi_header(const char *fields)
{
    char *words = strdup(fields), *rest = words;
    for (char *field; (field = strsep(&rest, ","));) {
        field += strspn(field, " ");
        const char *unit = strncmp(field, "memory.", 7) == 0       ? " [MiB]"
                           : strncmp(field, "used_", 5) == 0       ? " [MiB]"
                           : strcmp(field, "utilization.gpu") == 0 ? " [%]"
                           : strcmp(field, "power.draw") == 0      ? " [W]"
                                                                   : "";
        printf("%s%s%s", field, unit, rest ? ", " : "\n");
    }
    free(words);
}

int smi_query(unsigned count, const char *fields, const char *format)
{
    const bool units = !strstr(format, "nounits");
    if (!strstr(format, "noheader"))
        smi_header(fields);
    for (unsigned i = 0; i < count; i++) {
        const struct shown gpu = smi_look(i);
        char *words = strdup(fields), *rest = words;
        for (char *field; (field = strsep(&rest, ","));) {
            field += strspn(field, " ");
            if (!show_field(field, &gpu, units)) {
                printf("Field \"%s\" is not a valid field to query.\n", field);
                return 2;
            }
            fputs(rest ? ", " : "\n", stdout);
        }
        free(words);
    }
    return 0;
}

/* -q: one figure a line, by its section. */
int smi_report(unsigned count)
{
    char driver[80] = "";
    CALL(nvmlSystemGetDriverVersion, driver, (unsigned)sizeof driver);
    printf("\n==============NVSMI LOG==============\n\n%-38s: %s\n%-38s: %u\n", "Driver Version", driver,
           "Attached GPUs", count);
    for (unsigned i = 0; i < count; i++) {
        const struct shown gpu = smi_look(i);
        printf("GPU %08X:%02X:00.0\n", 0, i + 1);
        printf("    %-34s: %s\n", "Product Name", gpu.name);
        printf("    %-34s: %s\n", "Persistence Mode", gpu.persistence ? "Enabled" : "Disabled");
        printf("    %-34s: %s\n", "GPU UUID", gpu.uuid);
        puts("    FB Memory Usage");
        printf("        %-30s: %llu MiB\n", "Total", smi_mib(gpu.memory.total));
        printf("        %-30s: %llu MiB\n", "Reserved", smi_mib(gpu.memory.reserved));
        printf("        %-30s: %llu MiB\n", "Used", smi_mib(gpu.memory.used));
        printf("        %-30s: %llu MiB\n", "Free", smi_mib(gpu.memory.free));
        puts("    Utilization");
        printf("        %-30s: %u %%\n", "Gpu", gpu.use.gpu);
        printf("        %-30s: %u %%\n", "Memory", gpu.use.memory);
        smi_report_processes(&gpu);
    }
    return 0;
}
