/* The times at which a context kept the GPU busy, as a union of intervals: streams run side by side, and no
 * moment may be charged twice, in whatever order their ends are noticed. */
#ifndef SLIPWAY_BUSY_H
#define SLIPWAY_BUSY_H

#include <stdint.h>

/* Streams that launch without a break have one interval each that grows. More are needed only while a long
 * kernel runs beside many short bursts of another stream. */
#define BUSY_SPANS 16

struct busy {
    int count;
    struct busy_span {
        int64_t from, to; /* disjoint, ascending */
    } span[BUSY_SPANS];
};

/* Adds [from, to): the part of it, in ns, that was not in the union yet. Where there is no room for another
 * interval, the smallest gap is closed and never charged. */
int64_t busy_add(struct busy *busy, int64_t from, int64_t to);
/* Adds `ns` that lie somewhere within [from, to), as far as there is room for them: the ns that are new. */
int64_t busy_fill(struct busy *busy, int64_t from, int64_t to, int64_t ns);
/* Nothing that begins before this time will be added any more. */
void busy_forget(struct busy *busy, int64_t before);

#endif
