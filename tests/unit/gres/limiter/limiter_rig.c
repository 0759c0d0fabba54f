/* Programs for the limiter, on a GPU and a clock that are made up:
 *   limiter_rig SCENARIO [NUMBER]   prints lines of "name value". */
#include "cuda_launch.h"
#include "limiter.h"
#include "made_up_gpu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static kernel_function *launch_kernel;

static CUresult launch(int64_t us, intptr_t stream)
{
    return launch_kernel(us, 8, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
}

static CUresult launch_as(intptr_t f, int64_t us, intptr_t stream)
{
    int64_t *parameters[] = {&us};
    return launch_kernel(f, 8, 1, 1, 32, 1, 1, 0, stream, parameters, NULL);
}

static void *find(const char *name)
{
    for (const struct hook *hook = launch_hooks; hook->name; hook++)
        if (!strcmp(hook->name, name))
            return hook->wrapper;
    wrong("not wrapped");
    return NULL;
}

static void fill(void)
{
    for (const struct hook *hook = launch_hooks; hook->name; hook++)
        *hook->real = real_function(hook->name);
    launch_kernel = find("cuLaunchKernel");
}

/* Launches kernels as fast as it may, for a minute of kernels, or some seconds of very short ones. */
static void keep_busy(int64_t us, int streams)
{
    for (int64_t end = now + (us < 100 ? 5 * S : 60 * S), count = 0; now < end; count++)
        launch(us, streams == 1 ? 0 : 3 + count % streams);
}

static void mixed(void) /* one function: mostly short, now and then long, in a rhythm */
{
    for (int64_t end = now + 60 * S, count = 0; now < end; count++)
        launch_as(7, count % 16 ? 10 : 20000, 0);
}

static void rare(void) /* 10 us in every 2 ms: less than the share */
{
    for (int64_t end = now + 20 * S; now < end; now += 2 * MS)
        launch(10, 0);
}

static void lazy(void) /* each kernel's code is loaded at its first launch */
{
    loading = 5 * MS;
    for (int count = 0; count < 500; count++)
        launch_kernel(100, 8 + (unsigned)count, 1, 1, 32, 1, 1, 0, 0, NULL, NULL);
}

static void flood(void) /* much work at once, all of it unknown before */
{
    for (int64_t count = 0; count < 1000; count++)
        launch(100000 + count, 0);
    printf("deepest_ms %lld\n", (long long)(deepest / MS));
}

/* Ever new grids, on a GPU that is done with each at once. */
static void shapes(void)
{
    launch_kernel(7, 1, 1, 1, 32, 1, 1, 0, 0, NULL, NULL);
    for (unsigned count = 1; count < 20000; count++) {
        int64_t none = 0, *parameters[] = {&none};
        launch_kernel(7, count, 1 + count % 7, 1, 32, 1, 1, 0, 0, parameters, NULL);
    }
    printf("sleeps %lld\n", (long long)sleeps);
}

/* Below the share, so that nothing waits: two streams by turns, without a break. */
static void turns(void)
{
    the_slice.device->sm_percent = 99;
    for (int64_t count = 0; count < 100000; count++) {
        launch(2, 3 + count % 2);
        now += 4 * US;
    }
    printf("records_per_ms %.2f\n", (double)records / ((double)now / MS - 1000000));
}

/* As turns(), but the program waits for each kernel. */
static void waiting(int64_t us)
{
    const int64_t began = now, before = records;
    while (now < began + 20 * S) {
        launch(us, 3);
        synchronise(3);
    }
    printf("records_per_ms %.2f\n", (double)(records - before) / 20000);
}

/* A launch that the program waits for, or by means that are not seen (a copy); then it computes for a millisecond. */
static void launch_and_wait(int64_t us, int is_seen)
{
    launch_as(7, us, 3);
    if (is_seen)
        synchronise(3);
    else
        now += us * US;
    now += MS;
}

/* A function that was short once takes long from then on. */
static void grown(int64_t us, int is_seen)
{
    launch_as(7, 1, 3);
    synchronise(3);
    for (const int64_t end = now + 60 * S; now < end;)
        launch_and_wait(us, is_seen);
}

/* Short and long ones of one function in turns, each waited for. */
static void in_turns(int is_seen)
{
    for (int64_t end = now + 60 * S, count = 0; now < end; count++)
        launch_and_wait(count % 2 ? 20000 : 10, is_seen);
}

/* Bursts that are not waited for, while the program computes: half of the time, if it may. */
static void bursts(void)
{
    while (now < 1060 * S) {
        for (int count = 0; count < 10; count++)
            launch(100, 0);
        now += 2 * MS;
    }
}

/* Kernels that may overlap, all in one busy stretch of three milliseconds. */
static void overlapping(void)
{
    int attributes[18] = {6, 0, 1};
    intptr_t config[8] = {[4] = 5, (intptr_t)attributes, 1};
    CUresult (*call)() = (CUresult(*)())find("cuLaunchKernelEx");
    int64_t between = 0;
    the_slice.device->sm_percent = 99;
    for (int count = 0; count < 600; count++) {
        const int64_t before = records;
        call(config, (intptr_t)5, NULL, NULL);
        between += count > 8 && records > before;
    }
    printf("stretches %lld\n", (long long)between);
}

/* A launch of one function by attributes, which may begin before the one in front of it has ended. */
static void launch_overlapping(intptr_t f, int64_t us, intptr_t stream)
{
    int attributes[18] = {6, 0, 1};
    intptr_t config[8] = {8 | 1ll << 32, 1, [4] = stream, (intptr_t)attributes, 1}; /* a grid of 8 blocks */
    int64_t *parameters[] = {&us};
    ((CUresult(*)())find("cuLaunchKernelEx"))(config, f, parameters, NULL);
}

/* So many batches of 200 launches, each of which the program waits for; prints what one launch takes. */
static void batches(int count, void (*launch_one)(int64_t us, int number), int64_t us)
{
    const int64_t began = now;
    for (int batch = 0; batch < count; batch++) {
        for (int number = 0; number < 200; number++)
            launch_one(us, number);
        synchronise_all();
    }
    printf("us_per_launch %.2f\n", (double)(now - began) / US / 200 / count);
}

static void launch_by_turns(int64_t us, int number) { launch(us, 3 + number % 2); }
static void launch_dependent(int64_t us, int number) { (void)number, launch_overlapping(7, us, 3); }

static void launch_slowly(int64_t us, int number) /* as an interpreter does */
{
    (void)number;
    launch(us, LEGACY);
    now += 3 * US;
}

/* The GPU's clock may differ from the processor's. */
static void by_turns(int64_t us, double clock)
{
    gpu_clock = clock;
    batches(2000, launch_by_turns, us);
}

/* Dependent launches of a function that took 50 us before. */
static void dependent(int64_t us)
{
    the_slice.device->sm_percent = 99;
    for (int count = 0; count < 1000; count++)
        launch_as(7, 50, 3);
    synchronise_all();
    batches(1000, launch_dependent, us);
}

/* Launches that are slower than the GPU, which takes longer for one that is measured by itself. */
static void latent(int64_t us)
{
    the_slice.device->sm_percent = 99;
    latency = 2 * US;
    event_takes = 8 * US;
    batches(1000, launch_slowly, us);
}

/* After a kernel of a minute. */
static void long_debt(void)
{
    launch(60000000, 0);
    now += 60001 * MS;
    int64_t began = now;
    launch(10, 0);
    printf("waited_ms %lld\n", (long long)((now - began) / MS));
    now += 60 * S;
    began = now;
    launch(10, 0);
    printf("later_ms %lld\n", (long long)((now - began) / MS));
}

/* Root sets the arrival time to 0 while a program waits for 9 seconds. */
static void cancelled(void)
{
    launch(3000000, 0);
    now += 3001 * MS;
    limiter_poll();
    cancel_at = now + S;
    int64_t began = now;
    launch(10, 0);
    printf("waited_ms %lld\n", (long long)((now - began) / MS));
}

/* While the program waits for its share, signals come. */
static void signalled(int64_t count)
{
    launch(3000000, 0);
    now += 3001 * MS;
    interrupts = (int)count;
    int64_t began = now;
    launch(10, 0);
    printf("first_ms %lld\n", (long long)((now - began) / MS));
    launch(10, 0);
    printf("both_ms %lld\n", (long long)((now - began) / MS));
}

/* A long kernel of known duration in one stream, short ones in another one. */
static void beside(void)
{
    the_slice.device->sm_percent = 99;
    for (int count = 0; count < 5; count++) {
        launch(300000, 3);
        synchronise(3);
        now += 200 * MS;
    }
    launch(300000, 3);
    int64_t began = now;
    for (int count = 0; count < 100; count++)
        launch(10, 4);
    printf("launched_after_us %lld\n", (long long)((now - began) / US));
}

static void *launch_blocked(void *unused)
{
    launch(700, BLOCKED);
    return unused;
}

/* One thread is blocked in the driver while it records an event, another one goes on launching. */
static void blocked(void)
{
    pthread_t thread;
    launch(10, 4);
    set_blocking(1);
    if (pthread_create(&thread, NULL, launch_blocked, NULL))
        wrong("no thread");
    wait_for_blocking(2);
    for (int count = 0; count < 100; count++)
        launch(10, 4);
    printf("launched 100\n");
    set_blocking(0);
    pthread_join(thread, NULL);
}

/* Streams that are made, used once and destroyed. */
static void churn(void)
{
    for (int64_t end = now + 30 * S, count = 0; now < end; count++) {
        const intptr_t stream = 3 + count % 10;
        launch(500, stream);
        limiter_end_stream((void *)stream);
    }
}

/* What the limiter told root, in ns, and what ran. */
static void measured(void)
{
    int64_t count = 0;
    keep_busy(1000, 1);
    synchronise(LEGACY);
    FILE *file = fopen(SLIPWAY_COUNTERS, "r");
    if (!file || fseek(file, SLIPWAY_LIMITER_OFFSET + 8, SEEK_SET) || fread(&count, 8, 1, file) != 1)
        wrong("no counters");
    printf("measured_ms %lld\n", (long long)(count / MS));
}

static int64_t idle_then_busy(void)
{
    launch(10, 0);
    now += 3600 * S;
    int64_t began = now;
    while (now < began + S)
        launch(1000, 0);
    return began;
}

/* A kernel that waits for a later launch, as persistent ones do, must not wait for ever. */
static void persistent(void)
{
    launch(3600 * 1000000ll, 3);
    int64_t began = now;
    for (int count = 0; count < 1000; count++)
        launch(10, 4);
    printf("launched_after_ms %lld\n", (long long)((now - began) / MS));
}

/* The next launch comes behind it in the same stream. */
static void behind(void)
{
    launch(3600 * 1000000ll, 3);
    now += 60 * MS;
    int64_t began = now;
    launch(10, 3);
    printf("launched_after_ms %lld\n", (long long)((now - began) / MS));
}

static void captured(void)
{
    capturing[3] = somebody_captures = 1;
    for (int count = 0; count < 1000; count++)
        launch(50000, 3);
    printf("captured_events %lld\ncaptured_sleeps %lld\n", (long long)events, (long long)sleeps);
    for (int count = 0; count < 1000; count++)
        launch(10, 4); /* another stream is measured meanwhile */
    capturing[3] = somebody_captures = 0;
    CUresult (*graph)(intptr_t, intptr_t) = find("cuGraphLaunch");
    for (int64_t end = now + 60 * S; now < end;)
        graph(50000, 3);
}

static void refused(void)
{
    for (int count = 0; count < 1000; count++)
        if (launch(-1, 0) != CUDA_ERROR_INVALID_VALUE)
            wrong("the driver's answer was lost");
}

/* The program waits, then ends; the next one of the session comes at the same moment. */
static void debt(void)
{
    launch(1000000, 0);
    now += 1000500 * US;
    limiter_poll();
    pid_t child = fork();
    if (!child) {
        int64_t began = now;
        launch(10, 0);
        printf("waited_ms %lld\n", (long long)((now - began) / MS));
        exit(0);
    }
    waitpid(child, NULL, 0);
}

/* The first program of the session neither waits nor looks, and is still computing when it ends. */
static void exit_early(void)
{
    if (!fork()) {
        launch(1000000, 0);
        now += 400 * MS;
        exit(0);
    }
    wait(NULL);
    now += 400 * MS;
    int64_t began = now;
    launch(10, 0);
    printf("waited_ms %lld\n", (long long)((now - began) / MS));
}

static void contexts(void)
{
    int64_t began = now, before = events;
    while (now < began + 60 * S) {
        for (int count = 0; count < 10; count++)
            launch(5000, 0);
        limiter_forget(0);
        if (events != before)
            wrong("events of a context that has ended were kept");
    }
}

/* By any way to launch. */
static void gate(const char *name)
{
    intptr_t config[8] = {[4] = 5}, list[8] = {200000, [5] = 6};
    CUresult (*call)() = (CUresult(*)())find(name);
    for (int64_t end = now + 60 * S; now < end;) {
        if (strstr(name, "MultiDevice"))
            call(list, 1, 0);
        else if (strstr(name, "KernelEx"))
            call(config, (intptr_t)200000, NULL, NULL);
        else if (strstr(name, "Graph"))
            call((intptr_t)200000, (intptr_t)0);
        else if (strstr(name, "Kernel"))
            call((intptr_t)200000, 8, 1, 1, 32, 1, 1, 0, (intptr_t)0, NULL, NULL);
        else
            call((intptr_t)200000, 8, 8, (intptr_t)0);
    }
}

static void list_gates(void)
{
    for (const struct hook *hook = launch_hooks; hook->name; hook++)
        printf("%s 1\n", hook->name);
}

static void play(const char *name, int64_t us)
{
    int64_t began = now;
    if (!strcmp(name, "busy"))
        keep_busy(us, 1);
    else if (!strcmp(name, "streams"))
        keep_busy(us, 4);
    else if (!strcmp(name, "contended"))
        slower = 1.25, keep_busy(us, 1);
    else if (!strcmp(name, "unmeasurable"))
        unmeasurable = LEGACY, keep_busy(us, 1);
    else if (!strcmp(name, "whole"))
        the_slice.device->sm_percent = 100, keep_busy(us, 1);
    else if (!strcmp(name, "mps"))
        the_slice.compute = COMPUTE_MPS, keep_busy(us, 1);
    else if (!strcmp(name, "mixed"))
        mixed();
    else if (!strcmp(name, "rare"))
        rare();
    else if (!strcmp(name, "lazy"))
        lazy();
    else if (!strcmp(name, "flood"))
        flood();
    else if (!strcmp(name, "idle"))
        began = idle_then_busy();
    else if (!strcmp(name, "persistent"))
        persistent();
    else if (!strcmp(name, "captured"))
        captured();
    else if (!strcmp(name, "refused"))
        refused();
    else if (!strcmp(name, "debt"))
        debt();
    else if (!strcmp(name, "exit"))
        exit_early();
    else if (!strcmp(name, "contexts"))
        contexts();
    else if (!strcmp(name, "shapes"))
        shapes();
    else if (!strcmp(name, "turns"))
        turns();
    else if (!strcmp(name, "waiting"))
        waiting(us);
    else if (!strcmp(name, "grown"))
        grown(us, 1);
    else if (!strcmp(name, "grown_unseen"))
        grown(us, 0);
    else if (!strcmp(name, "in_turns"))
        in_turns((int)us);
    else if (!strcmp(name, "bursts"))
        bursts();
    else if (!strcmp(name, "overlapping"))
        overlapping();
    else if (!strcmp(name, "by_turns"))
        by_turns(us, 1);
    else if (!strcmp(name, "by_turns_99"))
        the_slice.device->sm_percent = 99, by_turns(us, 1);
    else if (!strcmp(name, "by_turns_fast"))
        by_turns(us, 1 + 100e-6);
    else if (!strcmp(name, "by_turns_slow"))
        by_turns(us, 1 - 100e-6);
    else if (!strcmp(name, "dependent"))
        dependent(us);
    else if (!strcmp(name, "latent"))
        latent(us);
    else if (!strcmp(name, "terms"))
        terms = SLIPWAY_DIRECTORY "/terms", keep_busy(us, 1);
    else if (!strcmp(name, "cancelled"))
        cancelled();
    else if (!strcmp(name, "behind"))
        behind();
    else if (!strcmp(name, "long_debt"))
        long_debt();
    else if (!strcmp(name, "signalled"))
        signalled(us);
    else if (!strcmp(name, "beside"))
        beside();
    else if (!strcmp(name, "blocked"))
        blocked();
    else if (!strcmp(name, "churn"))
        churn();
    else if (!strcmp(name, "measured"))
        measured();
    else if (!strcmp(name, "gates"))
        list_gates();
    else
        gate(name);
    print_share(began);
}

int main(int count, char **arguments)
{
    if (count < 2)
        wrong("which scenario?");
    setvbuf(stdout, NULL, _IOLBF, 0);
    fill();
    play(arguments[1], count > 2 ? atoll(arguments[2]) : 0);
    printf("events %lld\nrecords %lld\nqueries %lld\nwaits %lld\nslept_ms %lld\n", (long long)events,
           (long long)records, (long long)queries, (long long)waits, (long long)(slept / MS));
    return 0;
}
