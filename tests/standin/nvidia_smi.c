/* The stand-in nvidia-smi: as the real one it loads libnvidia-ml.so.1 when it runs, so it shows what
 * that says, which in a session is the shim.
 *
 *   nvidia-smi | -L | --query-gpu=FIELD,… --format=csv[,noheader][,nounits]
 *   nvidia-smi memory-limits --set -n CGROUP --soft-limit MIB --hard-limit MIB -i GPU
 */
#define _GNU_SOURCE
#include "nvml.h"
#include "state.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef STANDIN_LIMITS /* what memory-limits was told; the tests of Slurm's side read it */
#define STANDIN_LIMITS "/run/nvidia-standin-limits"
#endif
#define MOST 64

static void *library;

static void *need(const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "nvidia-smi: libnvidia-ml.so.1 has no %s\n", name);
        exit(1);
    }
    return found;
}

#define CALL(name, ...) ((nvmlReturn_t(*)())need(#name))(__VA_ARGS__)

struct shown {
    nvmlDevice_t device;
    char name[96], uuid[96];
    unsigned index, celsius, milliwatts, most_milliwatts;
    nvmlMemory_v2_t memory;
    nvmlUtilization_t use;
};

static unsigned open_nvml(void)
{
    unsigned count = 0;
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n%s\n",
                dlerror());
        exit(12);
    }
    if (CALL(nvmlInit_v2)) {
        fputs("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
              stderr);
        exit(9);
    }
    CALL(nvmlDeviceGetCount_v2, &count);
    if (!count) {
        puts("No devices were found");
        exit(6);
    }
    return count;
}

static struct shown look(unsigned index)
{
    struct shown gpu = {.index = index};
    CALL(nvmlDeviceGetHandleByIndex_v2, index, &gpu.device);
    CALL(nvmlDeviceGetName, gpu.device, gpu.name, (unsigned)sizeof gpu.name);
    CALL(nvmlDeviceGetUUID, gpu.device, gpu.uuid, (unsigned)sizeof gpu.uuid);
    CALL(nvmlDeviceGetTemperature, gpu.device, 0, &gpu.celsius);
    CALL(nvmlDeviceGetPowerUsage, gpu.device, &gpu.milliwatts);
    CALL(nvmlDeviceGetEnforcedPowerLimit, gpu.device, &gpu.most_milliwatts);
    gpu.memory.version = NVML_VERSION(nvmlMemory_v2_t, 2);
    CALL(nvmlDeviceGetMemoryInfo_v2, gpu.device, &gpu.memory);
    CALL(nvmlDeviceGetUtilizationRates, gpu.device, &gpu.use);
    return gpu;
}

/* --- the table ------------------------------------------------------------------------------------- */

#define LINE "+-----------------------------------------------------------------------------------------+\n"

static unsigned long long mib(unsigned long long bytes)
{
    return bytes / STANDIN_MIB;
}

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
    snprintf(memory, sizeof memory, "%lluMiB / %lluMiB", mib(gpu->memory.used),
             mib(gpu->memory.total));
    printf("| %3u  %-34.34s | %22s | %7u%% %4uC %3uW  |\n", gpu->index, gpu->name, memory,
           gpu->use.gpu, gpu->celsius, gpu->milliwatts / 1000);
    fputs("+-----------------------------------------+------------------------+----------------------+\n",
          stdout);
}

static void process_name(unsigned pid, char *text, size_t length)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    FILE *file = pid ? fopen(path, "r") : NULL;
    const size_t got = file ? fread(text, 1, length - 1, file) : 0;
    text[got] = '\0'; /* the first word ends with a zero of its own */
    if (file)
        fclose(file);
    if (!got)
        snprintf(text, length, "[Not Found]");
}

static int table_processes(const struct shown *gpu)
{
    static const char *const kinds[][2] = {{"nvmlDeviceGetComputeRunningProcesses_v3", "C"},
                                           {"nvmlDeviceGetGraphicsRunningProcesses_v3", "G"}};
    nvmlProcessInfo_t infos[MOST];
    char name[256];
    int shown = 0;
    for (size_t kind = 0; kind < 2; kind++) {
        unsigned count = MOST;
        nvmlReturn_t (*running)(nvmlDevice_t, unsigned *, nvmlProcessInfo_t *) = need(kinds[kind][0]);
        if (running(gpu->device, &count, infos))
            continue;
        for (unsigned i = 0; i < count; i++, shown++) {
            process_name(infos[i].pid, name, sizeof name);
            printf("| %4u %12u %6s   %-46.46s %7lluMiB    |\n", gpu->index, infos[i].pid,
                   kinds[kind][1], name, mib(infos[i].usedGpuMemory));
        }
    }
    return shown;
}

static int table(unsigned count)
{
    int processes = 0;
    table_head();
    for (unsigned i = 0; i < count; i++) {
        const struct shown gpu = look(i);
        table_row(&gpu);
    }
    puts("\n" LINE "| Processes:" "                                                                              |\n"
         "|  GPU          PID   Type   Process name                                  GPU Memory     |\n"
         "|=========================================================================================|");
    for (unsigned i = 0; i < count; i++) {
        const struct shown gpu = look(i);
        processes += table_processes(&gpu);
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
        const struct shown gpu = look(i);
        printf("GPU %u: %s (UUID: %s)\n", i, gpu.name, gpu.uuid);
    }
    return 0;
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
    } else if (strcmp(field, "memory.total") == 0)
        printf("%llu%s", mib(gpu->memory.total), units ? " MiB" : "");
    else if (strcmp(field, "memory.used") == 0)
        printf("%llu%s", mib(gpu->memory.used), units ? " MiB" : "");
    else if (strcmp(field, "memory.free") == 0)
        printf("%llu%s", mib(gpu->memory.free), units ? " MiB" : "");
    else if (strcmp(field, "utilization.gpu") == 0)
        printf("%u%s", gpu->use.gpu, units ? " %" : "");
    else if (strcmp(field, "temperature.gpu") == 0)
        printf("%u", gpu->celsius);
    else if (strcmp(field, "power.draw") == 0)
        printf("%u.00%s", gpu->milliwatts / 1000, units ? " W" : "");
    else
        return false;
    return true;
}

/* As the real one: "memory.used [MiB], utilization.gpu [%]", with or without units in the lines. */
static void show_header(const char *fields)
{
    char *words = strdup(fields), *rest = words;
    for (char *field; (field = strsep(&rest, ","));) {
        field += strspn(field, " ");
        const char *unit = strncmp(field, "memory.", 7) == 0       ? " [MiB]"
                           : strcmp(field, "utilization.gpu") == 0 ? " [%]"
                           : strcmp(field, "power.draw") == 0      ? " [W]"
                                                                   : "";
        printf("%s%s%s", field, unit, rest ? ", " : "\n");
    }
    free(words);
}

static int query(unsigned count, const char *fields, const char *format)
{
    const bool units = !strstr(format, "nounits");
    if (!strstr(format, "noheader"))
        show_header(fields);
    for (unsigned i = 0; i < count; i++) {
        const struct shown gpu = look(i);
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
    const char *fields = NULL, *format = "csv";
    bool only_names = false;
    if (argc > 1 && strcmp(argv[1], "memory-limits") == 0)
        return memory_limits(argc, argv);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-L") == 0 || strcmp(argv[i], "--list-gpus") == 0)
            only_names = true;
        else if (strncmp(argv[i], "--query-gpu=", 12) == 0)
            fields = argv[i] + 12;
        else if (strncmp(argv[i], "--format=", 9) == 0)
            format = argv[i] + 9;
        else {
            printf("Invalid combination of input arguments: %s\n", argv[i]);
            return 2;
        }
    }
    const unsigned count = open_nvml();
    if (only_names)
        return show_list(count);
    return fields ? query(count, fields, format) : table(count);
}
