/* Which pieces of a process's lanes run when. Within a time slice the kernels of several lanes run side by
 * side as far as their blocks have room on the multiprocessors, in the order in which they were given; one
 * that does not fit waits, and those after it wait with it. So small kernels of several streams overlap, as
 * on a real GPU, and large ones take turns. The GPU is busy while any of them runs. */
#define _GNU_SOURCE
#include "schedule.h"

#define TIME_SLICE_NS 2000000ull

struct piece *schedule_piece(struct lane *lane, uint64_t number)
{
    return &lane->pieces[number % QUEUE];
}

static uint64_t later(uint64_t one, uint64_t other)
{
    return one > other ? one : other;
}

/* The piece that is next in the lane; NULL for none. */
static struct piece *head(struct lane *lane)
{
    return lane->booked < lane->given ? schedule_piece(lane, lane->booked + 1) : NULL;
}

/* What could have begun in the past did: that a thread woke up late is not the GPU's idleness. */
static uint64_t earliest(const struct lane *lane, const struct piece *piece)
{
    return later(piece->given_at, lane->free_at);
}

void schedule_end(struct lane *lane, struct piece *piece, uint64_t end)
{
    piece->booked_to = lane->free_at = end;
    lane->booked++;
}

/* When the piece that another lane waits for is over; NEVER while that is not known. */
static uint64_t end_of(struct lane *lane, uint64_t number)
{
    if (lane->booked < number)
        return NEVER;
    return lane->given - number < QUEUE ? schedule_piece(lane, number)->booked_to : 0;
}

/* Events and waits at the heads of lanes, as far as what they wait for is known. */
static bool resolve(struct lane *lanes)
{
    bool any = false, more = true;
    while (more) {
        more = false;
        for (struct lane *lane = lanes; lane; lane = lane->next)
            for (struct piece *piece; (piece = head(lane)) && !piece->width; more = any = true) {
                const uint64_t other = piece->after ? end_of(piece->after, piece->number) : 0;
                if (other == NEVER)
                    break;
                schedule_end(lane, piece, later(earliest(lane, piece), other));
            }
    }
    return any;
}

/* Which of two kernels gets room first: one that runs already, then by priority, then the older one. */
static bool goes_first(const struct lane *a, const struct piece *one, const struct lane *b,
                       const struct piece *other)
{
    if (one->started != other->started)
        return one->started;
    if (a->priority != b->priority)
        return a->priority < b->priority;
    return one->order < other->order;
}

/* The next kernel that could run at `now` and was not chosen in this turn yet. */
static struct lane *choose(struct lane *lanes, uint64_t now, uint64_t turn)
{
    struct lane *found = NULL;
    for (struct lane *lane = lanes; lane; lane = lane->next) {
        struct piece *piece = head(lane);
        if (!piece || !piece->width || earliest(lane, piece) > now || piece->number == turn)
            continue;
        if (!found || goes_first(lane, piece, found, head(found)))
            found = lane;
    }
    return found;
}

/* When the next kernel could begin that cannot yet. */
static uint64_t next_begin(struct lane *lanes, uint64_t now)
{
    uint64_t first = NEVER;
    for (struct lane *lane = lanes; lane; lane = lane->next) {
        const struct piece *piece = head(lane);
        if (piece && piece->width && earliest(lane, piece) > now && earliest(lane, piece) < first)
            first = earliest(lane, piece);
    }
    return first;
}

/* Lets kernels run side by side until the first of them ends, another one can begin or the limit; returns
 * how long, 0 for none can run. A kernel's `number` marks the turn in which it was chosen. */
static uint64_t run_side_by_side(struct lane *lanes, uint64_t now, uint64_t limit)
{
    static uint64_t turns;
    const uint64_t turn = ++turns, begin = next_begin(lanes, now);
    uint64_t length = (begin < limit ? begin : limit) - now;
    unsigned room = STANDIN_MULTIPROCESSORS;
    bool any = false;
    for (struct lane *lane; (lane = choose(lanes, now, turn)) && head(lane)->width <= room;) {
        struct piece *piece = head(lane);
        piece->number = turn;
        piece->started = any = true;
        room -= piece->width;
        length = piece->left < length ? piece->left : length;
    }
    for (struct lane *lane = any ? lanes : NULL; lane; lane = lane->next) {
        struct piece *piece = head(lane);
        if (!piece || !piece->width || piece->number != turn)
            continue;
        piece->left -= length;
        if (!piece->left)
            schedule_end(lane, piece, now + length);
    }
    return any ? length : 0;
}

uint64_t schedule_book(int gpu, struct lane *lanes)
{
    const bool any = resolve(lanes);
    const uint64_t first = next_begin(lanes, 0);
    if (first == NEVER)
        return any;
    state_lock();
    const uint64_t begin = later(first, state()->gpus[gpu].free_at);
    uint64_t now = begin;
    for (uint64_t length; now < begin + TIME_SLICE_NS &&
                          (length = run_side_by_side(lanes, now, begin + TIME_SLICE_NS));) {
        now += length;
        resolve(lanes);
    }
    state()->gpus[gpu].free_at = now;
    state_add_busy(gpu, begin, now - begin);
    state_unlock();
    return now;
}
