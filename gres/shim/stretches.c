#include "stretches.h"

#include <stdlib.h>
#include <string.h>

#define REBASE INT64_C(1000000000) /* ns: a float of so many has a resolution of 64 ns */
/* ns: several times what both clocks differ by, and less than a program takes to queue a stretch of work */
#define PROMPT INT64_C(50000)
#define OLD_BASE (8 * REBASE)
#define STRETCHES_OVERLAP INT64_C(100000000) /* ns: a stream whose next stretch began so long ago is idle */

struct mark *stretches_mark(struct stretches *all)
{
    struct mark *mark = all->spare;
    if (mark)
        all->spare = mark->next;
    else
        mark = calloc(1, sizeof *mark);
    if (mark)
        *mark = (struct mark){.event = mark->event, .users = 1};
    return mark;
}

struct mark *stretches_mark_by_clock(struct stretches *all, int64_t now)
{
    struct mark *mark = stretches_mark(all);
    if (mark)
        *mark = (struct mark){.event = mark->event, .users = 1, .at = now, .known = 1, .recorded = now, .idle = 1,
                              .by_clock = 1};
    return mark;
}

void stretches_drop(struct stretches *all, struct mark *mark)
{
    if (!mark || --mark->users)
        return;
    mark->next = all->spare;
    all->spare = mark;
}

int stretches_begin(struct stretches *all, int stream, struct mark *start, struct mark *end,
                    const struct tally *tally)
{
    int number = 0;
    if (all->open == STRETCHES)
        return -1;
    while (all->stretch[number].state != STRETCH_FREE)
        number++;
    end->users++;
    all->stretch[number] = (struct stretch){.state = STRETCH_RECORDING, .start = start, .end = end,
                                            .tally = *tally, .stream = stream};
    all->order[all->open++] = (unsigned char)number;
    return number;
}

void stretches_recorded(struct stretches *all, int number)
{
    all->stretch[number].state = STRETCH_RECORDED;
}

static void stretches_free(struct stretches *all, int number)
{
    struct stretch *stretch = &all->stretch[number];
    int place = 0;
    while (all->order[place] != number)
        place++;
    stretches_drop(all, stretch->start);
    stretches_drop(all, stretch->end);
    stretch->state = STRETCH_FREE;
    all->open--;
    memmove(all->order + place, all->order + place + 1, (size_t)(all->open - place));
}

void stretches_cancel(struct stretches *all, int number)
{
    stretches_free(all, number);
}

/* Marks of one stream end in their order, so those behind one that has not ended need no query:
 * stretches_ask() stops there. */
void stretches_choose(struct stretches *all, struct look *look, int64_t now)
{
    if (all->base && now - all->base->at > OLD_BASE) {
        stretches_drop(all, all->base);
        all->base = NULL;
    }
    look->count = 0;
    look->base = all->base ? all->base->event : NULL;
    for (int place = 0; place < all->open; place++) {
        const int number = all->order[place];
        const struct stretch *stretch = &all->stretch[number];
        if (stretch->state != STRETCH_RECORDED)
            continue;
        look->at[look->count].number = number;
        look->at[look->count].stream = stretch->stream;
        look->at[look->count].start = stretch->start->by_clock ? NULL : stretch->start->event;
        look->at[look->count].start_known = stretch->start->known;
        look->at[look->count++].end = stretch->end->event;
    }
}

static int stretches_is_behind(const struct look *look, int at)
{
    for (int earlier = 0; earlier < at; earlier++)
        if (look->at[earlier].stream == look->at[at].stream && look->at[earlier].state == EVENTS_PENDING)
            return 1;
    return 0;
}

void stretches_ask(struct look *look)
{
    for (int at = 0; at < look->count; at++) {
        look->at[at].state = EVENTS_PENDING;
        if (stretches_is_behind(look, at))
            continue;
        look->at[at].state = events_state(look->at[at].end);
        if (look->at[at].state != EVENTS_DONE)
            continue;
        if (!look->base) /* then it is this one, which thereby is at 0 */
            look->base = look->at[at].start ? look->at[at].start : look->at[at].end;
        if (!look->at[at].start_known)
            look->at[at].start_at = events_between(look->base, look->at[at].start);
        look->at[at].end_at = events_between(look->base, look->at[at].end);
    }
}

static void stretches_know(struct mark *mark, int64_t at)
{
    if (!mark->known)
        mark->at = at;
    mark->known = 1;
}

static void stretches_rebase(struct stretches *all, struct mark *mark)
{
    if (all->base && mark->at - all->base->at < REBASE)
        return;
    mark->users++;
    stretches_drop(all, all->base);
    all->base = mark;
}

/* With several unknown ones of a kind, each is taken to be as long as the others. */
static void stretches_teach(const struct tally *tally, int64_t took)
{
    const uint32_t number = tally->unknown ? tally->unknown : 1;
    if (tally->unknown)
        took -= tally->expected;
    if (tally->teaches)
        kinds_learn(&tally->learn, took > 0 ? took / number : 0);
}

/* The GPU passed the mark as soon as it was recorded: it was waiting for the program, not the other way round. */
static int stretches_is_prompt(const struct mark *mark)
{
    return mark->at - mark->recorded < PROMPT;
}

static int64_t stretches_new_time(struct stretches *all, struct stretch *stretch)
{
    const struct tally *tally = &stretch->tally;
    int64_t from = stretch->start->at, to = stretch->end->at;
    if (stretch->start->idle)
        from += tally->call;
    if (from < tally->enqueued)
        from = tally->enqueued;
    from += tally->idle;
    if (from > to)
        from = to;
    stretches_teach(tally, to - from);
    /* Short kernels that are launched one by one without a pause leave the GPU idle between them. And what began
     * without an event may have waited for another stream first. */
    const int is_short = tally->launches > 1 && !tally->gap && stretches_is_prompt(stretch->end);
    if ((is_short || stretch->start->by_clock) && !tally->unknown && to - from > tally->expected)
        return busy_fill(&all->busy, from, to, tally->expected);
    return busy_add(&all->busy, from, to);
}

/* Whatever is still to come begins at a mark that is known, or later than all that is known. */
static void stretches_forget(struct stretches *all, int64_t latest)
{
    for (int place = 0; place < all->open; place++) {
        const struct mark *start = all->stretch[all->order[place]].start;
        if (start->known && start->at < latest)
            latest = start->at;
    }
    busy_forget(&all->busy, latest - STRETCHES_OVERLAP);
}

/* The time at which the base was passed. After an idle time both clocks are compared anew, before they have drifted
 * apart: by the start of a stretch that nothing else runs beside. */
static int64_t stretches_zero(struct stretches *all, const struct look *look, int64_t now)
{
    int at = 0;
    while (at < look->count && look->at[at].state != EVENTS_DONE)
        at++;
    if (at == look->count)
        return now;
    const struct mark *start = all->stretch[look->at[at].number].start;
    if (!start->known && start->idle && all->open == 1 && all->base)
        all->base->at = start->recorded - look->at[at].start_at;
    if (all->base)
        return all->base->at;
    /* The start itself is the base, or the end if it has no event. Where its stream was not idle then, all that is
     * known is that its end is over. */
    if (start->by_clock)
        return now - look->at[at].end_at;
    return start->known ? start->at : start->idle ? start->recorded : now - look->at[at].end_at;
}

int64_t stretches_estimated(struct stretches *all, int64_t from, int64_t to, int64_t ns, int64_t now)
{
    const int64_t beyond = from + ns > now ? from + ns - now : 0; /* else an estimate would hide what comes next */
    if (beyond >= ns)
        return ns;
    to = to > from + ns ? to : from + ns;
    return busy_fill(&all->busy, from, to < now ? to : now, ns - beyond) + beyond;
}

struct use stretches_settle(struct stretches *all, const struct look *look, int64_t now)
{
    struct use use = {0, now};
    const int64_t zero = stretches_zero(all, look, now);
    int64_t latest = INT64_MIN;
    for (int at = 0; at < look->count; at++) {
        struct stretch *stretch = &all->stretch[look->at[at].number];
        if (look->at[at].state == EVENTS_PENDING)
            continue;
        if (look->at[at].state == EVENTS_DONE) {
            stretches_know(stretch->start, zero + look->at[at].start_at);
            stretches_know(stretch->end, zero + look->at[at].end_at);
            use.ns += stretches_new_time(all, stretch);
            latest = stretch->start->at > latest ? stretch->start->at : latest;
            stretches_rebase(all, stretch->end);
        } else {
            use.ns += stretch->tally.expected; /* the context has an error: nothing will be measured */
        }
        use.since = stretch->tally.first < use.since ? stretch->tally.first : use.since;
        stretches_free(all, look->at[at].number);
    }
    if (latest > INT64_MIN)
        stretches_forget(all, latest);
    return use;
}

void stretches_close(struct stretches *all, int in_use)
{
    while (all->open)
        stretches_free(all, all->order[0]);
    stretches_drop(all, all->base);
    while (all->spare && !in_use) {
        struct mark *mark = all->spare;
        all->spare = mark->next;
        events_destroy(mark->event);
        free(mark);
    }
    memset(all, 0, sizeof *all);
}
