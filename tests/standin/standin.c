/* standin reset [GPUS [MIB]]: new, empty GPUs, with the memory that CUDA can give; only while no program
 * uses them.
 * standin set driver=BRANCH | persistence=on|off: how the driver is, 580 and on after a reset.
 * standin show: what the GPUs and their processes have used until now, as JSON. */
#include "state.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void show_process(int slot, pid_t pid, bool first)
{
    const struct slot *shown = &state()->slots[slot];
    printf("%s\n  {\"pid\": %d, \"bytes\": [", first ? "" : ",", (int)pid);
    for (int i = 0; i < state()->count; i++)
        printf("%s%llu", i ? ", " : "", (unsigned long long)shown->bytes[i]);
    printf("], \"busy_ns\": [");
    for (int i = 0; i < state()->count; i++)
        printf("%s%llu", i ? ", " : "", (unsigned long long)shown->busy[i]);
    printf("]}");
}

static int show(void)
{
    bool first = true;
    pid_t pid;
    state_lock();
    printf("{\"now_ns\": %llu, \"gpus\": [", (unsigned long long)state_now());
    for (int i = 0; i < state()->count; i++) {
        const struct gpu *gpu = &state()->gpus[i];
        printf("%s\n  {\"uuid\": \"%s\", \"memory\": %llu, \"used\": %llu, \"busy_ns\": %llu}",
               i ? "," : "", gpu->uuid, (unsigned long long)gpu->memory,
               (unsigned long long)state_used(i), (unsigned long long)gpu->busy);
    }
    printf("], \"processes\": [");
    for (int i = 0; i < STANDIN_SLOTS; i++)
        if (state_owner(i, &pid)) {
            show_process(i, pid, first);
            first = false;
        }
    printf("]}\n");
    state_unlock();
    return 0;
}

static void make_file(void)
{
    const int file = open(STANDIN_STATE, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file >= 0) {
        fchmod(file, 0666); /* whatever the umask says */
        close(file);
    }
}

static bool set(const char *what)
{
    if (strncmp(what, "driver=", 7) == 0 && atoi(what + 7) > 0)
        state()->branch = atoi(what + 7);
    else if (strcmp(what, "persistence=on") == 0 || strcmp(what, "persistence=off") == 0)
        state()->no_persistence = strcmp(what, "persistence=off") == 0;
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    const int count = argc > 2 ? atoi(argv[2]) : 1;
    const unsigned long long mib = argc > 3 ? strtoull(argv[3], NULL, 10) : STANDIN_MEMORY / STANDIN_MIB;
    if (strcmp(command, "reset") == 0)
        make_file();
    if (!state()) {
        perror(STANDIN_STATE);
        return 1;
    }
    if (strcmp(command, "show") == 0)
        return show();
    if (strcmp(command, "set") == 0 && argc == 3 && set(argv[2]))
        return 0;
    if (strcmp(command, "reset") || count < 1 || count > STANDIN_GPUS || !mib) {
        fputs("usage: standin reset [GPUS [MIB]] | set WHAT=VALUE | show\n", stderr);
        return 2;
    }
    state_lock();
    state_reset(count, mib * STANDIN_MIB);
    state_unlock();
    return 0;
}
