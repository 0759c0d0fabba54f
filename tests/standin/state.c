/* See state.h. The file is never closed while the process lives: the kernel drops all POSIX locks
 * of a process on a file as soon as the process closes any descriptor of it. */
#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t threads = PTHREAD_MUTEX_INITIALIZER;
static struct state *mapped;
static int file = -1;
static int own_slot = -1;

uint64_t state_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/* An open file description's lock, since both libraries of one process may want it. */
static void lock_byte_of_state(short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    while (fcntl(file, F_OFD_SETLKW, &lock) < 0 && errno == EINTR)
        ;
}

void state_lock(void)
{
    pthread_mutex_lock(&threads);
    lock_byte_of_state(F_WRLCK);
}

void state_unlock(void)
{
    lock_byte_of_state(F_UNLCK);
    pthread_mutex_unlock(&threads);
}

/* --- the host and its driver ----------------------------------------------------------------------- */

static uint64_t pid_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) < 0 ? 0 : (uint64_t)status.st_ino;
}

bool state_on_host(void)
{
    return pid_namespace() == mapped->host;
}

/* A process in a PID namespace cannot know its number on the host, so one that no process of the
 * namespace has is made up for it; tests choose one. */
static unsigned host_pid(int slot)
{
    const char *chosen = getenv("STANDIN_HOST_PID");
    if (chosen)
        return (unsigned)atoi(chosen);
    return state_on_host() ? (unsigned)getpid() : 5000000u + (unsigned)slot;
}

int state_branch(void)
{
    const char *chosen = getenv("STANDIN_DRIVER");
    const int branch = chosen ? atoi(chosen) : mapped->branch;
    return branch ? branch : STANDIN_BRANCH;
}

/* --- the state -------------------------------------------------------------------------------------- */

void state_reset(int count, uint64_t memory)
{
    memset(mapped, 0, sizeof *mapped);
    mapped->host = pid_namespace();
    for (int i = 0; i < count; i++) {
        struct gpu *gpu = &mapped->gpus[i];
        gpu->memory = memory;
        snprintf(gpu->name, sizeof gpu->name, "Slipway Stand-in %lluGB",
                 (unsigned long long)(memory / STANDIN_MIB / 1024));
        snprintf(gpu->uuid, sizeof gpu->uuid, "GPU-51195a90-0000-4000-8000-%012d", i);
    }
    mapped->count = count;
    mapped->magic = STANDIN_MAGIC;
}

/* In a child the parent's lock on the file's description would never be the child's to drop. */
static void forget(void)
{
    if (mapped) {
        munmap(mapped, sizeof *mapped);
        close(file);
    }
    mapped = NULL;
    file = own_slot = -1;
    pthread_mutex_init(&opening, NULL);
    pthread_mutex_init(&threads, NULL);
}

static struct state *map_file(void)
{
    struct stat status;
    file = open(STANDIN_STATE, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return NULL;
    state_lock();
    if (fstat(file, &status) < 0 || (status.st_size < (off_t)sizeof *mapped &&
                                     ftruncate(file, sizeof *mapped) < 0)) {
        state_unlock();
        return NULL;
    }
    mapped = mmap(NULL, sizeof *mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED)
        mapped = NULL;
    else if (mapped->magic != STANDIN_MAGIC)
        state_reset(1, STANDIN_MEMORY);
    state_unlock();
    return mapped;
}

struct state *state(void)
{
    static pid_t watched;
    pthread_mutex_lock(&opening);
    if (!watched) {
        watched = getpid();
        pthread_atfork(NULL, NULL, forget);
    }
    struct state *found = mapped ? mapped : map_file();
    pthread_mutex_unlock(&opening);
    return found;
}

bool state_visible(int gpu)
{
    char path[256];
    snprintf(path, sizeof path, STANDIN_DEVICE "%d", gpu);
    int device = open(path, O_RDWR | O_CLOEXEC);
    if (device < 0)
        return errno == ENXIO;
    close(device);
    return true;
}

/* A driver frees the memory of a process some time after its death: STANDIN_LINGER_MS of its environment. */
static uint64_t linger_ns(void)
{
    const char *text = getenv("STANDIN_LINGER_MS");
    return text ? strtoull(text, NULL, 10) * 1000000ull : 0;
}

/* Whether the memory of a dead process is still there. */
static bool lingers(struct slot *slot)
{
    if (!slot->linger)
        return false;
    if (!slot->died)
        slot->died = state_now();
    return state_now() - slot->died < slot->linger;
}

int state_own_slot(void)
{
    pid_t pid;
    state_lock();
    for (int i = 0; own_slot < 0 && i < STANDIN_SLOTS; i++) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1 + i, .l_len = 1};
        if (!state_owner(i, &pid) && lingers(&mapped->slots[i]))
            continue;
        if (fcntl(file, F_SETLK, &lock) == 0) {
            memset(&mapped->slots[i], 0, sizeof mapped->slots[i]);
            mapped->slots[i].host_pid = host_pid(i);
            mapped->slots[i].linger = linger_ns();
            own_slot = i;
        }
    }
    state_unlock();
    return own_slot;
}

bool state_owner(int slot, pid_t *pid)
{
    /* Asked for the file's description, so that a lock of this very process is seen as well. */
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1 + slot, .l_len = 1};
    if (fcntl(file, F_OFD_GETLK, &lock) < 0 || lock.l_type == F_UNLCK)
        return false;
    *pid = lock.l_pid;
    return true;
}

uint64_t state_used(int gpu)
{
    uint64_t used = 0;
    pid_t pid;
    for (int i = 0; i < STANDIN_SLOTS; i++) {
        struct slot *slot = &mapped->slots[i];
        if (!slot->bytes[gpu])
            continue;
        if (i == own_slot || state_owner(i, &pid) || lingers(slot))
            used += slot->bytes[gpu];
        else
            memset(slot, 0, sizeof *slot); /* its process is dead */
    }
    return used;
}

void state_add_busy(int gpu, uint64_t start, uint64_t length)
{
    struct slot *slot = &mapped->slots[own_slot];
    uint64_t number = start / STANDIN_WINDOW_NS;
    struct window *window = &slot->windows[gpu][number % STANDIN_WINDOWS];
    if (window->number != number)
        *window = (struct window){.number = number};
    window->busy += length;
    slot->busy[gpu] += length;
    mapped->gpus[gpu].busy += length;
}

int state_busy_percent(const struct slot *slot, int gpu, uint64_t now, unsigned seconds)
{
    const uint64_t end = now / STANDIN_WINDOW_NS - 10 * seconds;
    uint64_t busy = 0;
    for (int i = 0; i < STANDIN_WINDOWS; i++) {
        const struct window *window = &slot->windows[gpu][i];
        if (window->number < end && window->number + 10 >= end)
            busy += window->busy;
    }
    const uint64_t percent = busy * 100 / (10 * STANDIN_WINDOW_NS);
    return percent > 100 ? 100 : (int)percent;
}
