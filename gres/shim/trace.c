/* The counts are in memory that is shared with a process of its own, the printer, which waits for the end of
 * this one. So they are printed also when the program calls _exit(), as the workers of Python's
 * multiprocessing do, or is killed. A program that ends by exit() prints them itself. */
#define _GNU_SOURCE
#include "trace.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NAMES 48         /* different functions that can be told apart */
#define NAME_LENGTH 56
#define DESCRIPTORS 4096 /* closed by the printer on kernels without close_range() */
#define INTERVAL 20000000 /* ns between the printer's looks */

enum name_state { NAME_FREE, NAME_WRITING, NAME_READY };

struct trace_name {
    _Atomic uint32_t state;
    _Atomic uint32_t count;
    char text[NAME_LENGTH];
};

struct trace_page {
    _Atomic uint64_t count[TRACE_EVENTS];
    struct trace_name refused[NAMES], unknown[NAMES];
    _Atomic int printed;
    int pid;
};

int trace_level;
void (*trace_usage)(uint64_t *used, uint64_t *total);
static struct trace_page *_Atomic trace_page;

/* --- text, without stdio: this runs in any state of the program --- */

struct trace_line {
    size_t length;
    char text[512];
};

static void put(struct trace_line *line, const char *text)
{
    while (*text && line->length < sizeof line->text - 1)
        line->text[line->length++] = *text++;
}

static void put_number(struct trace_line *line, uint64_t number)
{
    char digits[21];
    char *first = digits + sizeof digits - 1;
    *first = 0;
    do
        *--first = (char)('0' + number % 10);
    while (number /= 10);
    put(line, first);
}

static void put_pair(struct trace_line *line, const char *before, uint64_t number, const char *behind)
{
    put(line, before);
    put_number(line, number);
    put(line, behind);
}

static void put_begin(struct trace_line *line, int pid)
{
    line->length = 0;
    put_pair(line, "slipway trace: " SLIPWAY_REAL " of process ", (uint64_t)pid, ": ");
}

static void put_end(struct trace_line *line)
{
    line->text[line->length++] = '\n';
    if (write(2, line->text, line->length) < 0)
        return;
}

/* --- printing --- */

static void print_counts(struct trace_page *page)
{
    struct trace_line line;
    put_begin(&line, page->pid);
    put_pair(&line, "launches ", page->count[TRACE_LAUNCHES], ", ");
    put_pair(&line, "measured stretches ", page->count[TRACE_STRETCHES], ", ");
    put_pair(&line, "unmeasurable ", page->count[TRACE_UNMEASURABLE], ", ");
    put_pair(&line, "waits ", page->count[TRACE_WAITS], "");
    put_pair(&line, " (", page->count[TRACE_SLEPT_NS] / 1000000, " ms), ");
    put_pair(&line, "charges ", page->count[TRACE_CHARGES], "");
    put_pair(&line, " (", page->count[TRACE_CHARGED_BYTES], " bytes, of which ");
    put_pair(&line, "", page->count[TRACE_RELEASED_BYTES], " released)");
    put_end(&line);
}

static void print_names(int pid, const struct trace_name *list, const char *what)
{
    struct trace_line line;
    for (int at = 0; at < NAMES; at++) {
        if (list[at].state != NAME_READY)
            continue;
        put_begin(&line, pid);
        put(&line, what);
        put(&line, list[at].text);
        put_pair(&line, ", ", list[at].count, list[at].count == 1 ? " time" : " times");
        put_end(&line);
    }
}

static void print_page(struct trace_page *page)
{
    if (__atomic_exchange_n((int *)&page->printed, 1, __ATOMIC_ACQ_REL))
        return;
    print_counts(page);
    print_names(page->pid, page->refused, "refused ");
    print_names(page->pid, page->unknown, "unknown ");
}

__attribute__((destructor)) static void print_at_exit(void)
{
    struct trace_page *page = trace_page;
    if (page && page->pid == getpid())
        print_page(page);
}

/* --- the printer --- */

#ifndef SYS_close_range
#define SYS_close_range 436 /* on every architecture */
#endif

/* It must keep nothing of the program's but its standard error: others wait for the ends of pipes. */
static void close_all_but_stderr(void)
{
    close(0);
    close(1);
    if (!syscall(SYS_close_range, 3u, ~0u, 0u))
        return;
    for (int descriptor = 3; descriptor < DESCRIPTORS; descriptor++)
        close(descriptor);
}

static void run_printer(struct trace_page *page)
{
    const struct timespec interval = {0, INTERVAL};
    close_all_but_stderr();
    if (chdir("/"))
        _exit(1);
    while (syscall(SYS_getppid) == page->pid && !page->printed)
        nanosleep(&interval, NULL);
    print_page(page);
    _exit(0);
}

/* By the system call itself: no handlers of fork() run, and without a signal at its end the program's own
 * wait() does not see it. Signals stay blocked in it, so that Ctrl-C does not end it first. */
static void start_printer(struct trace_page *page)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (!syscall(SYS_clone, 0, 0, 0, 0, 0))
        run_printer(page);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* --- counting --- */

static struct trace_page *open_page(void)
{
    struct trace_page *page = trace_page, *none = NULL;
    if (page)
        return page;
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    page->pid = getpid();
    if (!__atomic_compare_exchange_n((struct trace_page **)&trace_page, &none, page, 0,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        munmap(page, sizeof *page);
        return none;
    }
    start_printer(page);
    return page;
}

/* Functions beyond the last place are counted in that. */
static void count_name(struct trace_name *list, const char *name)
{
    int at = 0;
    for (; at < NAMES; at++) {
        uint32_t state = NAME_FREE;
        if (__atomic_compare_exchange_n((uint32_t *)&list[at].state, &state, NAME_WRITING, 0,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            strncpy(list[at].text, at < NAMES - 1 ? name : "others", NAME_LENGTH - 1);
            list[at].state = NAME_READY;
            break;
        }
        while (list[at].state == NAME_WRITING) /* for a few instructions of another thread */
            ;
        if (at == NAMES - 1 || !strncmp(list[at].text, name, NAME_LENGTH - 1))
            break;
    }
    list[at].count++;
}

void trace_count(enum trace_event event, uint64_t amount)
{
    struct trace_page *page = open_page();
    if (page)
        page->count[event] += amount;
}

static void print_refusal(int pid, const char *function, uint64_t bytes)
{
    struct trace_line line;
    uint64_t used = 0, total = 0;
    put_begin(&line, pid);
    put(&line, "refused ");
    put(&line, function);
    put_pair(&line, ", asked for ", bytes, " bytes");
    if (trace_usage) {
        trace_usage(&used, &total);
        put_pair(&line, ", used ", used, " of ");
        put_pair(&line, "", total, "");
    }
    put_end(&line);
}

void trace_count_refused(const char *function, uint64_t bytes)
{
    struct trace_page *page = open_page();
    if (!page)
        return;
    count_name(page->refused, function);
    if (trace_level > 1)
        print_refusal(page->pid, function, bytes);
}

void trace_count_unknown(const char *name)
{
    struct trace_page *page = open_page();
    if (page)
        count_name(page->unknown, name);
}

/* The page is the parent's: the child gets its own, and a printer, when it first counts. */
static void reset_trace_in_child(void)
{
    trace_page = NULL;
}

__attribute__((constructor)) static void read_trace_level(void)
{
    const char *text = getenv("SLIPWAY_GPU_TRACE");
    if (!text || text[0] < '1' || text[0] > '2' || text[1])
        return;
    trace_level = text[0] - '0';
    pthread_atfork(NULL, NULL, reset_trace_in_child);
    open_page();
}
