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
    uint64_t left; /* nanoseconds that are not booked yet */
    uint64_t booked_to;
    uint64_t *end; /* where to write when it ended; NULL for nobody asks */
};

static struct queue {
    struct piece pieces[QUEUE];
    uint64_t given, done; /* numbers of pieces; the first is 1 */
    uint64_t last_end;
    bool started, idle;
} queues[STANDIN_GPUS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;

void time_forget(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&given, NULL);
    pthread_cond_init(&done, NULL);
    memset(queues, 0, sizeof queues);
}

static struct piece *piece_of(struct queue *queue, uint64_t number)
{
    return &queue->pieces[number % QUEUE];
}

static void sleep_until(uint64_t when)
{
    const struct timespec end = {.tv_sec = (time_t)(when / 1000000000ull),
                                 .tv_nsec = (long)(when % 1000000000ull)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL))
        ;
}

/* Books a piece, or the part of it that fits. What could have begun in the past did: that this thread
 * woke up late is not the GPU's idleness. An event (no time) only waits for what is before it. */
static uint64_t book_piece(int gpu, struct queue *queue, struct piece *piece, uint64_t most)
{
    const uint64_t length = piece->left < most ? piece->left : most;
    const uint64_t free_at = length ? state()->gpus[gpu].free_at : queue->last_end;
    const uint64_t start = piece->given_at > free_at ? piece->given_at : free_at;
    if (length) {
        state()->gpus[gpu].free_at = start + length;
        state_add_busy(gpu, start, length);
    }
    piece->left -= length;
    piece->booked_to = queue->last_end = start + length;
    return length;
}

/* Books at most one time slice for the pieces up to `last`; gives the first that is not all booked. */
static uint64_t book(int gpu, struct queue *queue, uint64_t last)
{
    uint64_t number = queue->done + 1, room = TIME_SLICE_NS;
    state_lock();
    for (; number <= last; number++) {
        struct piece *piece = piece_of(queue, number);
        room -= book_piece(gpu, queue, piece, room);
        if (piece->left)
            break;
    }
    state_unlock();
    return number;
}

/* Waits for the pieces before `number`, and lets go of each as soon as its time is over. */
static void finish(struct queue *queue, uint64_t number)
{
    while (queue->done + 1 < number) {
        sleep_until(piece_of(queue, queue->done + 1)->booked_to);
        const uint64_t now = state_now();
        pthread_mutex_lock(&lock);
        while (queue->done + 1 < number && piece_of(queue, queue->done + 1)->booked_to <= now) {
            struct piece *piece = piece_of(queue, queue->done + 1);
            if (piece->end)
                *piece->end = piece->booked_to;
            queue->done++;
        }
        pthread_cond_broadcast(&done);
        pthread_mutex_unlock(&lock);
    }
}

static void *work(void *of)
{
    struct queue *queue = of;
    const int gpu = (int)(queue - queues);
    prctl(PR_SET_TIMERSLACK, 1);
    for (;;) {
        pthread_mutex_lock(&lock);
        queue->idle = true;
        while (queue->done == queue->given)
            pthread_cond_wait(&given, &lock);
        queue->idle = false;
        const uint64_t last = queue->given;
        pthread_mutex_unlock(&lock);
        const uint64_t next = book(gpu, queue, last);
        finish(queue, next);
        if (next <= last) /* a part of it is booked, too */
            sleep_until(piece_of(queue, next)->booked_to);
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

/* An event after the last work is over at once: no thread needs to wake up for it. */
static bool is_over(struct queue *queue, uint64_t number, uint64_t *end)
{
    if (queue->done != number - 1 || !queue->idle)
        return false;
    if (end)
        *end = queue->last_end = state_now();
    queue->done = number;
    return true;
}

uint64_t time_give(int gpu, uint64_t ns, uint64_t *end)
{
    struct queue *queue = &queues[gpu];
    pthread_mutex_lock(&lock);
    if (!queue->started)
        start(queue);
    while (queue->given - queue->done >= QUEUE - 1)
        pthread_cond_wait(&done, &lock);
    const uint64_t number = ++queue->given;
    *piece_of(queue, number) = (struct piece){.given_at = state_now(), .left = ns, .end = end};
    if ((ns || !is_over(queue, number, end)) && queue->idle)
        pthread_cond_broadcast(&given);
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
        pthread_cond_wait(&done, &lock);
    pthread_mutex_unlock(&lock);
}
