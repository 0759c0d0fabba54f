/* Bytes held by all processes of the session: a table of slots in SLIPWAY_COUNTERS, one for each
 * process.
 *
 * The use is the sum over the slots, read and changed under a kernel lock of one byte of the file. A
 * process that is killed at any line has changed its own slot or has not; either way the kernel releases
 * the lock and the slot is swept, so nothing has to be repaired.
 *
 * A slot is valid as long as its byte of the file is locked. These are open file description (OFD) locks,
 * held by a mapping that a child does not inherit: the program could close a descriptor (daemons close
 * all of them), and a surviving child would keep a dead parent's slot. They do not depend on PIDs and so
 * work across PID namespaces. Two libraries (libcuda's shim and libnvidia-ml's) may each contain this
 * file in one process; the second only reads.
 */
#define _GNU_SOURCE
#include "ledger.h"

#include "counters.h"
#include "shim.h"
#include "slice.h"
#include "trace.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 4096
#define SLOTS_OFFSET (64 << 10)
#define LOCK_OF_ALL SLIPWAY_COUNTERS_SIZE /* bytes beyond the file's end can be locked, too */
#define LOCK_OF_SLOT(index) (SLIPWAY_COUNTERS_SIZE + 1 + (index))
#define PAGE 4096

struct slot {
    int32_t taken;
    int32_t pid;
    uint64_t pid_namespace;
    uint64_t bytes[SLIPWAY_MAX_DEVICES];
};

struct counters {
    uint32_t slots_ever; /* no slot at or beyond this one has ever been taken */
    uint32_t ended; /* seconds at which a process was last found dead that held memory */
    uint8_t others[SLOTS_OFFSET - 2 * sizeof(uint32_t)]; /* contains the limiter's part */
    struct slot slot[SLOTS];
};
_Static_assert(sizeof(struct counters) <= SLIPWAY_COUNTERS_SIZE, "the slots fit");

static pthread_mutex_t ledger_lock = PTHREAD_MUTEX_INITIALIZER;
static struct counters *counters; /* NULL: not attached */
static int file = -1;             /* for LOCK_OF_ALL */
static struct file_id file_id;
static void *anchor; /* the mapping that holds the lock of our slot */
static struct slot *own;
static pid_t owner; /* of all this: a child created without fork()'s handlers starts anew */

static void ledger_say_why_not(void)
{
    static const char line[] =
        "slipway: " SLIPWAY_COUNTERS " cannot be used, so no GPU memory can be had. "
        "Start the session again.\n";
    static int warned;
    if (!warned++ && write(2, line, sizeof line - 1) < 0)
        return;
}

/* The mapping has an open file description of its own: it outlives descriptors, and would keep LOCK_OF_ALL
 * when another thread of the program closes ours while we hold the lock. */
static void *ledger_map(void)
{
    int descriptor = open_counters();
    void *map = MAP_FAILED;
    if (file_identify(descriptor, &file_id) >= SLIPWAY_COUNTERS_SIZE)
        map = mmap(NULL, SLIPWAY_COUNTERS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (descriptor >= 0)
        close(descriptor);
    if (map == MAP_FAILED)
        return NULL;
    madvise(map, SLIPWAY_COUNTERS_SIZE, MADV_DONTFORK);
    return map;
}

static int ledger_attach(void)
{
    counters = ledger_map();
    owner = getpid();
    return counters ? 0 : -1;
}

/* A child holds nothing of its parent's: it starts unattached. */
static void ledger_forget(void)
{
    if (is_file(file, &file_id))
        close(file);
    file = -1;
    counters = NULL; /* the mappings were not inherited */
    anchor = NULL;
    own = NULL;
}

/* The first time, or after the program has closed our descriptor, whose number may be reused by now. */
static int ledger_reopen(void)
{
    file = open_counters();
    if (is_file(file, &file_id))
        return 0;
    if (file >= 0)
        close(file);
    file = -1;
    return -1;
}

static int ledger_enter(void)
{
    pthread_mutex_lock(&ledger_lock);
    if (counters && owner != getpid())
        ledger_forget();
    if ((counters || !ledger_attach()) && (is_file(file, &file_id) || !ledger_reopen()) &&
        !file_lock(file, F_OFD_SETLKW, F_WRLCK, LOCK_OF_ALL, NULL))
        return 0;
    ledger_say_why_not();
    pthread_mutex_unlock(&ledger_lock);
    return -1;
}

static void ledger_leave(void)
{
    file_lock(file, F_OFD_SETLK, F_UNLCK, LOCK_OF_ALL, NULL);
    pthread_mutex_unlock(&ledger_lock);
}

static uint64_t ledger_pid_namespace(void)
{
    char text[64]; /* pid:[4026531836] */
    uint64_t number = 0;
    ssize_t length = readlink("/proc/self/ns/pid", text, sizeof text);
    for (ssize_t at = 0; at < length; at++)
        if (text[at] >= '0' && text[at] <= '9')
            number = number * 10 + (uint64_t)(text[at] - '0');
    return number;
}

static int slot_lock_free(int descriptor)
{
    for (int index = 0; index < SLOTS; index++)
        if (!file_lock(descriptor, F_OFD_SETLK, F_WRLCK, LOCK_OF_SLOT(index), NULL))
            return index;
    return -1;
}

static int slot_is_alive(uint32_t index)
{
    struct flock found;
    if (file_lock(file, F_OFD_GETLK, F_WRLCK, LOCK_OF_SLOT(index), &found))
        return 1; /* unknown: count it, to be safe */
    return found.l_type != F_UNLCK;
}

/* On an overlay the mapping refers to the lower file, and the lock is gone with the descriptor: the next
 * process would sweep such a slot, so it must not be used. */
static void slot_give_up(void)
{
    if (slot_is_alive((uint32_t)(own - counters->slot)))
        return;
    own->taken = 0;
    own = NULL;
    munmap(anchor, PAGE);
    ledger_say_why_not();
}

/* First the lock, then the slot: nothing is charged to it before both are done. */
static int slot_claim(void)
{
    if (own)
        return 0;
    int descriptor = open_counters(), index = -1;
    if (!is_file(descriptor, &file_id))
        goto done;
    anchor = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, descriptor, 0);
    if (anchor == MAP_FAILED)
        goto done;
    madvise(anchor, PAGE, MADV_DONTFORK);
    index = slot_lock_free(descriptor);
    if (index < 0) {
        munmap(anchor, PAGE);
        goto done;
    }
    own = &counters->slot[index];
    memset(own, 0, sizeof *own);
    own->pid = getpid();
    own->pid_namespace = ledger_pid_namespace();
    if (counters->slots_ever < (uint32_t)index + 1)
        counters->slots_ever = (uint32_t)index + 1;
    own->taken = 1;
done:
    if (descriptor >= 0)
        close(descriptor); /* the anchor keeps the lock */
    if (own)
        slot_give_up();
    return own ? 0 : -1;
}

static uint32_t slots_ever(void)
{
    return counters->slots_ever < SLOTS ? counters->slots_ever : SLOTS;
}

static void slots_sweep(void)
{
    static const uint64_t nothing[SLIPWAY_MAX_DEVICES];
    for (uint32_t index = 0; index < slots_ever(); index++) {
        struct slot *slot = &counters->slot[index];
        if (!slot->taken || slot == own || slot_is_alive(index))
            continue;
        if (memcmp(slot->bytes, nothing, sizeof nothing))
            counters->ended = (uint32_t)time(NULL);
        memset(slot, 0, sizeof *slot);
    }
}

static uint64_t slots_used(int device)
{
    uint64_t sum = 0;
    for (uint32_t index = 0; index < slots_ever(); index++)
        if (counters->slot[index].taken)
            sum += counters->slot[index].bytes[device];
    return sum;
}

static int ledger_fits(int device, uint64_t bytes)
{
    uint64_t memory = slice()->device[device].memory;
    return !memory || (bytes <= memory && slots_used(device) <= memory - bytes);
}

static int ledger_has(int device)
{
    return device >= 0 && device < slice()->count;
}

static void ledger_trace_charge(uint64_t bytes)
{
    trace_add(TRACE_CHARGES, 1);
    trace_add(TRACE_CHARGED_BYTES, bytes);
}

int ledger_reserve(int device, uint64_t bytes)
{
    int result = -1;
    if (!ledger_has(device))
        return -1;
    if (!bytes) /* a pool that need not grow: the most frequent case, without the lock */
        return 0;
    if (ledger_enter())
        return -1;
    if (!ledger_fits(device, bytes))
        slots_sweep(); /* only now, since it takes a system call for each process */
    if (ledger_fits(device, bytes) && !slot_claim()) {
        own->bytes[device] += bytes;
        result = 0;
    }
    ledger_leave();
    if (!result)
        ledger_trace_charge(bytes);
    return result;
}

void ledger_charge(int device, uint64_t bytes)
{
    if (!bytes || !ledger_has(device) || ledger_enter())
        return;
    if (!slot_claim())
        own->bytes[device] += bytes;
    ledger_leave();
    ledger_trace_charge(bytes);
}

void ledger_release(int device, uint64_t bytes)
{
    if (!bytes || !ledger_has(device) || ledger_enter())
        return;
    if (own) /* a child that frees what it inherited has nothing to release */
        own->bytes[device] -= bytes < own->bytes[device] ? bytes : own->bytes[device];
    ledger_leave();
    trace_add(TRACE_RELEASED_BYTES, bytes);
}

uint64_t ledger_used(int device)
{
    if (!ledger_has(device) || ledger_enter())
        return 0;
    slots_sweep();
    uint64_t sum = slots_used(device);
    ledger_leave();
    return sum;
}

int ledger_death_within(uint32_t seconds)
{
    if (ledger_enter())
        return 0;
    slots_sweep();
    int result = (uint32_t)time(NULL) - counters->ended <= seconds;
    ledger_leave();
    return result;
}

int ledger_processes(int device, struct ledger_process *found, int most)
{
    int count = 0;
    if (!ledger_has(device) || ledger_enter())
        return 0;
    slots_sweep();
    uint64_t here = ledger_pid_namespace();
    for (uint32_t index = 0; index < slots_ever() && count < most; index++) {
        const struct slot *slot = &counters->slot[index];
        if (!slot->taken)
            continue;
        found[count].pid = slot->pid_namespace == here ? slot->pid : 0;
        found[count++].bytes = slot->bytes[device];
    }
    ledger_leave();
    return count;
}

static void ledger_before_fork(void)
{
    pthread_mutex_lock(&ledger_lock);
}

static void ledger_after_fork_in_parent(void)
{
    pthread_mutex_unlock(&ledger_lock);
}

static void ledger_after_fork_in_child(void)
{
    pthread_mutex_init(&ledger_lock, NULL);
    if (counters)
        ledger_forget();
}

__attribute__((constructor)) static void ledger_prepare(void)
{
    pthread_atfork(ledger_before_fork, ledger_after_fork_in_parent, ledger_after_fork_in_child);
}
