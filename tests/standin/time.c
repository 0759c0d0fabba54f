/* The GPU's time. Each process has a queue for each GPU and a thread that takes turns with those of
 * other processes: it books a time slice of the GPU in the shared state, waits until it is over, and
 * books the next. So two busy processes get half each, as a real GPU does it by time slices. */
#define _GNU_SOURCE
#include "driver.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define TIME_SLICE_NS 2000000ull
#define QUEUE 1024 /* a launch waits when so many are under way, as with a real driver */

struct piece {
    uint64_t given_at;
    uint64_t left; /* nanoseconds */
    uint64_t *end; /* where to write when it ended; NULL for nobody asks */
};

static struct queue {
    struct piece pieces[QUEUE];
    uint64_t given, done; /* numbers of pieces; the first is 1 */
    bool started;
} queues[STANDIN_GPUS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

void time_forget(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&changed, NULL);
    memset(queues, 0, sizeof queues);
}

static void sleep_until(uint64_t when)
{
    const struct timespec end = {.tv_sec = (time_t)(when / 1000000000ull),
                                 .tv_nsec = (long)(when % 1000000000ull)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL))
        ;
}

static void finish(struct queue *queue, uint64_t when)
{
    struct piece *piece = &queue->pieces[(queue->done + 1) % QUEUE];
    if (piece->end)
        *piece->end = when;
    queue->done++;
    pthread_cond_broadcast(&changed);
}

/* Books time for the first piece, or for a part of it, and gives when that will be over. What could
 * have begun in the past did: a late wake-up of this thread is not the GPU's idleness. */
static uint64_t book(int gpu, struct piece *piece, uint64_t most)
{
    const uint64_t length = piece->left < most ? piece->left : most;
    struct gpu *shared = &state()->gpus[gpu];
    state_lock();
    uint64_t start = piece->given_at > shared->free_at ? piece->given_at : shared->free_at;
    if (length) {
        shared->free_at = start + length;
        state_add_busy(gpu, start, length);
    }
    state_unlock();
    piece->left -= length;
    return start + length;
}

static void *work(void *of)
{
    struct queue *queue = of;
    const int gpu = (int)(queue - queues);
    uint64_t in_slice = 0;
    prctl(PR_SET_TIMERSLACK, 1);
    pthread_mutex_lock(&lock);
    for (;;) {
        while (queue->done == queue->given)
            pthread_cond_wait(&changed, &lock);
        struct piece *piece = &queue->pieces[(queue->done + 1) % QUEUE];
        const uint64_t before = piece->left;
        pthread_mutex_unlock(&lock);
        const uint64_t end = book(gpu, piece, TIME_SLICE_NS - in_slice);
        in_slice = (in_slice + before - piece->left) % TIME_SLICE_NS;
        sleep_until(end);
        pthread_mutex_lock(&lock);
        if (!piece->left)
            finish(queue, end);
    }
    return NULL;
}

static void start(struct queue *queue)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the program's own threads */
    if (pthread_create(&thread, NULL, work, queue))
        abort();
    pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    queue->started = true;
}

uint64_t time_give(int gpu, uint64_t ns, uint64_t *end)
{
    struct queue *queue = &queues[gpu];
    pthread_mutex_lock(&lock);
    if (!queue->started)
        start(queue);
    while (queue->given - queue->done >= QUEUE - 1)
        pthread_cond_wait(&changed, &lock);
    const uint64_t number = ++queue->given;
    queue->pieces[number % QUEUE] = (struct piece){state_now(), ns, end};
    if (!ns && queue->done == number - 1)
        finish(queue, state_now());
    else
        pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return number;
}

uint64_t time_last(int gpu)
{
    pthread_mutex_lock(&lock);
    const uint64_t number = queues[gpu].given;
    pthread_mutex_unlock(&lock);
    return number;
}

bool time_done(int gpu, uint64_t number)
{
    pthread_mutex_lock(&lock);
    const bool done = queues[gpu].done >= number;
    pthread_mutex_unlock(&lock);
    return done;
}

void time_wait(int gpu, uint64_t number)
{
    pthread_mutex_lock(&lock);
    while (queues[gpu].done < number)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}
