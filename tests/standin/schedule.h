/* The work of a process for a GPU, and the time at which it runs. */
#ifndef STANDIN_SCHEDULE_H
#define STANDIN_SCHEDULE_H

#include "driver.h"

#define QUEUE 1024 /* a launch waits when a lane has so many, as with a real driver */
#define NEVER UINT64_MAX

/* A kernel, an event (no time), or a wait for a piece of another lane (no time either). */
struct piece {
    uint64_t given_at, order;
    uint64_t left; /* nanoseconds that are not booked yet */
    uint64_t booked_to;
    unsigned width; /* multiprocessors; 0 for what takes no time */
    bool started;
    struct stamp *stamp; /* where to write when it ended; NULL for nobody asks */
    struct lane *after;
    uint64_t number; /* of the piece of `after`; of a kernel the turn in which it was chosen last */
};

struct lane {
    struct lane *next;
    int gpu, priority;
    bool closed;
    uint64_t given, booked, done; /* numbers of pieces; the first is 1. A lane that is reused goes on */
    uint64_t free_at; /* when what is booked is over */
    struct piece pieces[QUEUE];
};

struct piece *schedule_piece(struct lane *lane, uint64_t number);
/* The first piece that is not booked is over at that time. */
void schedule_end(struct lane *lane, struct piece *piece, uint64_t end);
/* Books at most one time slice of the GPU for its lanes, and returns the slice's end; 0 where nothing could be
 * booked. */
uint64_t schedule_book(int gpu, struct lane *lanes);

#endif
