/* The GPU's time. Each stream of a process has a lane, whose pieces of work run in order. Each process has a
 * thread for each GPU that takes turns with those of other processes: it books a time slice of the GPU in
 * the shared state for what its lanes have, waits until it is over, and books the next. So two busy processes
 * get half each, as a real GPU does it by time slices. */
#define _GNU_SOURCE
#include "schedule.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

static struct lane *lanes[STANDIN_GPUS];
static bool started[STANDIN_GPUS];
static uint64_t orders;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;

void time_forget(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&given, NULL);
    pthread_cond_init(&done, NULL);
    memset(lanes, 0, sizeof lanes);
    memset(started, 0, sizeof started);
}

void stamp_drop(struct stamp *stamp)
{
    if (stamp && __atomic_sub_fetch(&stamp->users, 1, __ATOMIC_ACQ_REL) == 0)
        free(stamp);
}

/* --- the thread ------------------------------------------------------------------------------------------ */

static void sleep_until(uint64_t when)
{
    const struct timespec end = {.tv_sec = (time_t)(when / 1000000000ull),
                                 .tv_nsec = (long)(when % 1000000000ull)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL))
        ;
}

static void end_piece(struct lane *lane)
{
    struct piece *piece = schedule_piece(lane, ++lane->done);
    if (piece->stamp)
        piece->stamp->end = piece->booked_to;
    stamp_drop(piece->stamp);
    piece->stamp = NULL;
}

/* Lets go of all that is over; returns when the next booked piece is. */
static uint64_t end_pieces(int gpu, uint64_t now)
{
    uint64_t next = NEVER;
    for (struct lane *lane = lanes[gpu]; lane; lane = lane->next) {
        while (lane->done < lane->booked && schedule_piece(lane, lane->done + 1)->booked_to <= now)
            end_piece(lane);
        if (lane->done < lane->booked && schedule_piece(lane, lane->done + 1)->booked_to < next)
            next = schedule_piece(lane, lane->done + 1)->booked_to;
    }
    pthread_cond_broadcast(&done);
    return next;
}

static void *work(void *of)
{
    const int gpu = (int)((bool *)of - started);
    prctl(PR_SET_TIMERSLACK, 1);
    pthread_mutex_lock(&lock);
    for (;;) {
        const uint64_t end = schedule_book(gpu, lanes[gpu]);
        if (!end) {
            pthread_cond_wait(&given, &lock);
            continue;
        }
        pthread_cond_broadcast(&given); /* lanes of other GPUs may wait for what was booked */
        for (uint64_t next; (next = end_pieces(gpu, state_now())) != NEVER;) {
            pthread_mutex_unlock(&lock);
            sleep_until(next);
            pthread_mutex_lock(&lock);
        }
        pthread_mutex_unlock(&lock);
        sleep_until(end); /* of a part of a piece */
        pthread_mutex_lock(&lock);
    }
    return NULL;
}

static void start(int gpu)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the program's own threads */
    if (pthread_create(&thread, NULL, work, &started[gpu]))
        abort();
    pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    started[gpu] = true;
}

/* --- lanes ----------------------------------------------------------------------------------------------- */

struct lane *lane_open(int gpu, int priority)
{
    pthread_mutex_lock(&lock);
    struct lane *lane = lanes[gpu];
    while (lane && !(lane->closed && lane->done == lane->given))
        lane = lane->next;
    if (!lane) {
        lane = calloc(1, sizeof *lane);
        if (!lane)
            abort();
        lane->next = lanes[gpu];
        lanes[gpu] = lane;
    }
    lane->gpu = gpu;
    lane->priority = priority;
    lane->closed = false;
    if (!started[gpu])
        start(gpu);
    pthread_mutex_unlock(&lock);
    return lane;
}

/* What is in it still runs. */
void lane_close(struct lane *lane)
{
    pthread_mutex_lock(&lock);
    lane->closed = true;
    pthread_mutex_unlock(&lock);
}

static uint64_t give(struct lane *lane, struct piece piece)
{
    while (lane->given - lane->done >= QUEUE - 1)
        pthread_cond_wait(&done, &lock);
    const uint64_t number = ++lane->given;
    piece.given_at = state_now();
    piece.order = ++orders;
    *schedule_piece(lane, number) = piece;
    /* An event in an empty lane is over at once: no thread needs to wake up for it. */
    if (!piece.width && !piece.after && lane->done == number - 1) {
        schedule_end(lane, schedule_piece(lane, number), piece.given_at);
        end_piece(lane);
    } else {
        pthread_cond_broadcast(&given);
    }
    return number;
}

uint64_t time_give(struct lane *lane, uint64_t ns, unsigned width, struct stamp *stamp)
{
    if (stamp)
        __atomic_add_fetch(&stamp->users, 1, __ATOMIC_ACQ_REL);
    pthread_mutex_lock(&lock);
    const uint64_t number = give(lane, (struct piece){.left = ns, .width = ns ? width : 0, .stamp = stamp});
    pthread_mutex_unlock(&lock);
    return number;
}

void time_give_wait(struct lane *lane, struct lane *after, uint64_t number)
{
    pthread_mutex_lock(&lock);
    if (after != lane && after->done < number)
        give(lane, (struct piece){.after = after, .number = number});
    pthread_mutex_unlock(&lock);
}

uint64_t time_last(struct lane *lane)
{
    pthread_mutex_lock(&lock);
    const uint64_t number = lane->given;
    pthread_mutex_unlock(&lock);
    return number;
}

bool time_done(struct lane *lane, uint64_t number)
{
    pthread_mutex_lock(&lock);
    const bool is_done = lane->done >= number;
    pthread_mutex_unlock(&lock);
    return is_done;
}

void time_wait(struct lane *lane, uint64_t number)
{
    pthread_mutex_lock(&lock);
    while (lane->done < number)
        pthread_cond_wait(&done, &lock);
    pthread_mutex_unlock(&lock);
}
