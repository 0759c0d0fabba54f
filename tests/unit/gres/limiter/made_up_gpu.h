/* A GPU and a clock that are made up, so that a minute passes in milliseconds and always in the same way.
 * A function is a number: the microseconds that it takes, unless its first parameter says otherwise. */
#ifndef MADE_UP_GPU_H
#define MADE_UP_GPU_H

#include "cuda_abi.h"
#include "slice.h"

#define US INT64_C(1000)
#define MS (1000 * US)
#define S (1000 * MS)
#define STREAMS 16
#define LEGACY 1
#define PER_THREAD 2

extern int64_t now;
extern double slower;  /* a neighbour's kernels take turns with ours */
extern int64_t latency;     /* a kernel in an idle stream begins so much later than it was launched */
extern int64_t event_takes; /* of the GPU's time */
extern double gpu_clock;    /* its speed, against the processor's */
extern int64_t loading; /* so long the driver takes for a launch */
extern int capturing[STREAMS], somebody_captures;
extern int unmeasurable; /* the stream that events cannot be recorded in */
extern struct slice the_slice;

extern int64_t cancel_at; /* when root sets the session's arrival time to 0 */
extern const char *terms; /* a file with a GPU's block of the file `load`, which is then kept new */

extern int64_t sleeps, slept, waits;
extern int64_t events, records, queries; /* events that exist; how often one was recorded, or asked for */
extern int interrupts; /* so many sleeps are ended by a signal */
/* 1: the next event in the stream BLOCKED is recorded only once it is 0; 2: somebody waits there */
#define BLOCKED 9
void set_blocking(int state);
void wait_for_blocking(int state);
extern int64_t deepest; /* the most work that was ever on its way, in ns */

void wrong(const char *what);
/* The program waits for a stream. */
void synchronise(intptr_t stream);
void synchronise_all(void);
/* The percentage of the time since `began` in which at least one kernel ran. */
void print_share(int64_t began);

/* How the driver's launches look here */
#define KERNEL intptr_t f, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c, unsigned m
typedef CUresult kernel_function(KERNEL, intptr_t, int64_t **, void **);

#endif
