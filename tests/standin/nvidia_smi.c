/* The stand-in nvidia-smi: as the real one it loads libnvidia-ml.so.1 when it runs, so it shows what
 * that says, which in a session is the shim; but processes by a private table (smi_processes.c).
 *
 *   nvidia-smi | -L | -q | pmon [-c 1] | --query-gpu=FIELD,… | --query-compute-apps=FIELD,…
 *              --format=csv[,noheader][,nounits]
 *   nvidia-smi memory-limits --set -n CGROUP --soft-limit MIB --hard-limit MIB -i GPU
 */
#define _GNU_SOURCE
#include "smi.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#ifndef STANDIN_LIMITS /* what memory-limits was told; the tests of Slurm's side read it */
#define STANDIN_LIMITS "/run/nvidia-standin-limits"
#endif

/* --- the table ------------------------------------------------------------------------------------- */

#define LINE "+-----------------------------------------------------------------------------------------+\n"

static void table_head(void)
{
    char driver[80] = "", when[64];
    int cuda = 0;
    const time_t now = time(NULL);
    CALL(nvmlSystemGetDriverVersion, driver, (unsigned)sizeof driver);
    CALL(nvmlSystemGetCudaDriverVersion_v2, &cuda);
    strftime(when, sizeof when, "%a %b %e %H:%M:%S %Y", localtime(&now));
    printf("%s\n" LINE "| NVIDIA-SMI %-22s Driver Version: %-14s CUDA Version: %d.%-5d |\n", when,
           driver, driver, cuda / 1000, cuda % 1000 / 10);
    fputs("|-----------------------------------------+------------------------+----------------------+\n"
          "| GPU  Name                               |           Memory-Usage | GPU-Util  Temp  Pwr  |\n"
          "|=========================================+========================+======================|\n",
          stdout);
}

static void table_row(const struct shown *gpu)
{
    char memory[64];
    snprintf(memory, sizeof memory, "%lluMiB / %lluMiB", smi_mib(gpu->memory.used),
             smi_mib(gpu->memory.total));
    printf("| %3u  %-34.34s | %22s | %7u%% %4uC %3uW  |\n", gpu->index, gpu->name, memory,
           gpu->use.gpu, gpu->celsius, gpu->milliwatts / 1000);
    fputs("+-----------------------------------------+------------------------+----------------------+\n",
          stdout);
}

static int table(unsigned count)
{
    int processes = 0;
    table_head();
    for (unsigned i = 0; i < count; i++) {
        const struct shown gpu = smi_look(i);
        table_row(&gpu);
    }
    puts("\n" LINE "| Processes:" "                                                                              |\n"
         "|  GPU          PID   Type   Process name                                  GPU Memory     |\n"
         "|=========================================================================================|");
    for (unsigned i = 0; i < count; i++) {
        const struct shown gpu = smi_look(i);
        processes += smi_table_processes(&gpu);
    }
    if (!processes)
        puts("|  No running processes found                                                             |");
    fputs(LINE, stdout);
    return 0;
}

/* --- lists ----------------------------------------------------------------------------------------- */

static int show_list(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const struct shown gpu = smi_look(i);
        printf("GPU %u: %s (UUID: %s)\n", i, gpu.name, gpu.uuid);
    }
    return 0;
}

/* --- limits of a cgroup's memory --------------------------------------------------------------------- */

/* Notes the whole command; a driver that knows of cgroups would act on it. */
static int memory_limits(int argc, char **argv)
{
    if (argc < 3 || (strcmp(argv[2], "--set") && strcmp(argv[2], "--get"))) {
        fputs("usage: nvidia-smi memory-limits --set|--get -n CGROUP …\n", stderr);
        return 2;
    }
    FILE *file = fopen(STANDIN_LIMITS, "a");
    if (!file) {
        perror(STANDIN_LIMITS);
        return 4;
    }
    for (int i = 2; i < argc; i++)
        fprintf(file, "%s%c", argv[i], i + 1 < argc ? ' ' : '\n');
    return fclose(file) ? 4 : 0;
}

int main(int argc, char **argv)
{
    const char *fields = NULL, *of_apps = NULL, *format = "csv";
    bool only_names = false, report = false;
    if (argc > 1 && strcmp(argv[1], "memory-limits") == 0)
        return memory_limits(argc, argv);
    if (argc > 1 && strcmp(argv[1], "pmon") == 0)
        return smi_pmon(smi_open());
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-L") == 0 || strcmp(argv[i], "--list-gpus") == 0)
            only_names = true;
        else if (strcmp(argv[i], "-q") == 0 || strcmp(argv[i], "--query") == 0)
            report = true;
        else if (strncmp(argv[i], "--query-gpu=", 12) == 0)
            fields = argv[i] + 12;
        else if (strncmp(argv[i], "--query-compute-apps=", 21) == 0)
            of_apps = argv[i] + 21;
        else if (strncmp(argv[i], "--format=", 9) == 0)
            format = argv[i] + 9;
        else {
            printf("Invalid combination of input arguments: %s\n", argv[i]);
            return 2;
        }
    }
    const unsigned count = smi_open();
    if (only_names)
        return show_list(count);
    if (report)
        return smi_report(count);
    if (of_apps)
        return smi_query_apps(count, of_apps, format);
    return fields ? smi_query(count, fields, format) : table(count);
}
