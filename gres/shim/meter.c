#include "meter.h"

#include <string.h>

#define STREAM_PER_THREAD ((void *)2) /* one handle for the default streams of all threads */

static pthread_t meter_owner(const void *handle)
{
    return handle == STREAM_PER_THREAD ? pthread_self() : 0;
}

static int64_t meter_smaller(int64_t one, int64_t other) { return one < other ? one : other; }

/* --- streams --- */

/* Launches of unknown duration that ended without a mark, mostly where no event can be recorded: they ran between
 * the first launch and now. */
static int64_t meter_unknown_time(const struct stream *stream, int64_t now)
{
    const struct tally *tail = &stream->tail;
    const int64_t most = tail->unknown * METER_STRETCH, took = now - tail->first;
    if (stream->mute && tail->unknown == tail->launches && tail->teaches)
        kinds_learn(&tail->learn, meter_smaller(took, most) / tail->launches);
    return meter_smaller(took, most);
}

/* The tail has ended (by now, if that is known) at a time that is not known. It is taken to have begun when it was
 * launched, or when what was measured before it ended. */
static int64_t meter_end_tail(struct meter *meter, struct stream *stream, int is_over, int64_t now)
{
    const struct tally tail = stream->tail;
    const struct mark *mark = stream->mark;
    const int64_t from = mark && mark->known && mark->at > tail.first ? mark->at : tail.first;
    int64_t ns = tail.expected - tail.paid;
    if (tail.unknown)
        ns += meter_unknown_time(stream, now);
    if (is_over)
        ns = meter_smaller(ns, now - from - tail.paid);
    stretches_drop(&meter->stretches, stream->mark);
    stream->mark = NULL;
    stream->tail = (struct tally){0};
    return ns > 0 ? stretches_estimated(&meter->stretches, from + tail.paid, stream->used, ns, now) : 0;
}

int meter_find_stream(const struct meter *meter, void *handle)
{
    const pthread_t owner = meter_owner(handle);
    for (int number = 0; number < meter->streams; number++)
        if (meter->stream[number].handle == handle && meter->stream[number].owner == owner)
            return number;
    return -1;
}

static int meter_has_stretches(const struct meter *meter, int stream)
{
    for (int place = 0; place < meter->stretches.open; place++)
        if (meter->stretches.stretch[meter->stretches.order[place]].stream == stream)
            return 1;
    return 0;
}

int meter_stream(struct meter *meter, void *handle, int64_t now, int64_t *lost)
{
    int oldest = -1, number = meter_find_stream(meter, handle);
    *lost = 0;
    if (number >= 0)
        return number;
    for (number = 0; number < METER_STREAMS; number++) {
        const struct stream *stream = &meter->stream[number];
        if (!stream->recording && !meter_has_stretches(meter, number) &&
            (oldest < 0 || stream->used < meter->stream[oldest].used))
            oldest = number;
    }
    if (oldest < 0)
        return 0; /* all of them are busy: it shares another one's account */
    *lost = meter_end_tail(meter, &meter->stream[oldest], 0, now);
    meter->streams = oldest < meter->streams ? meter->streams : oldest + 1;
    meter->stream[oldest] = (struct stream){.handle = handle, .owner = meter_owner(handle)};
    return oldest;
}

int meter_must_ask(const struct meter *meter, int number, const struct work *work, int64_t now)
{
    const struct stream *stream = &meter->stream[number];
    if (!stream->tail.launches && !stream->mark)
        return 0;
    return now - stream->used > METER_GAP || meter->since + 1 >= meter->until || kinds_expect(work).sample ||
           (stream->mute && (stream->tail.unknown || now - stream->looked > METER_STRETCH));
}

/* Random, so that no regular pattern of a program hides its long kernels among short ones. */
static uint32_t meter_random(void)
{
    static uint32_t state = 2463534242u;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

/* Either the program did something else, or the work took longer than it used to: the next random sample comes soon.
 * Not after a wait for the share, in which idle time says nothing. */
static void meter_doubt(struct meter *meter, const struct tally *tail, int64_t now)
{
    const int64_t took = now - tail->first;
    const uint32_t next = meter->since + 1 + meter_random() % METER_SOON;
    if (tail->launches && !tail->unknown && tail->first > meter->woke && took > METER_STRETCH &&
        took / 4 > tail->expected && next < meter->until)
        meter->until = next;
}

int64_t meter_answer(struct meter *meter, int number, enum events_state state, int64_t now)
{
    struct stream *stream = &meter->stream[number];
    struct tally *tail = &stream->tail;
    int64_t ns = 0;
    stream->looked = now;
    if (state != EVENTS_PENDING) {
        meter_doubt(meter, tail, now);
        return meter_end_tail(meter, stream, 1, now);
    }
    if (stream->mute && tail->launches) { /* it was busy all the time since */
        const int64_t from = tail->first + tail->paid;
        tail->paid += now - from;
        ns = stretches_estimated(&meter->stretches, from, now, now - from, now);
    }
    return ns;
}

void meter_waited(struct meter *meter, int number, int64_t began, int64_t now)
{
    struct stream *stream = &meter->stream[number];
    struct tally *tail = &stream->tail;
    const int64_t at = stream->mark && stream->mark->known ? stream->mark->at : began;
    const int64_t took = now - (at > began ? at : began);
    if (!tail->launches || tail->unknown || took < METER_STRETCH || took <= tail->expected)
        return;
    if (tail->launches == 1 && meter->streams == 1) /* else it may have waited for other work as well */
        kinds_learn(&tail->learn, took);
    tail->expected = took;
}

/* --- launches --- */

/* One launch in two stretches' time is measured by itself. It is chosen by number, not by time, since the launch
 * that is due by time is the one after a long one. */
static int meter_is_sample(struct meter *meter, int64_t now)
{
    if (++meter->since < meter->until)
        return 0;
    if (meter->sampled) {
        int64_t took = now - meter->sampled, launches = meter->since;
        int64_t stride = launches * 2 * METER_STRETCH / (took > 0 ? took : 1);
        stride = stride < METER_STRIDE ? METER_STRIDE : stride > 4096 ? 4096 : stride;
        meter->stride = (meter->stride + (uint32_t)stride) / 2;
    } else {
        meter->stride = METER_STRIDE;
    }
    meter->sampled = now;
    meter->since = 0;
    meter->until = 1 + meter_random() % (2 * meter->stride);
    return 1;
}

static void meter_add(struct tally *tail, const struct work *work, int64_t expected, int64_t now)
{
    if (!tail->launches) {
        tail->first = now;
        tail->learn = *work;
    }
    tail->launches++;
    if (expected >= 0) {
        tail->expected += expected;
        tail->teaches &= tail->unknown > 0; /* it is no longer the only one */
        return;
    }
    /* The first unknown one is learned from what the known ones leave, others only if they are the same. */
    tail->teaches = !tail->unknown || (tail->teaches && tail->learn.function == work->function &&
                                       tail->learn.blocks == work->blocks);
    tail->learn = *work;
    tail->unknown++;
}

/* By the clock there is at most one mark in each stretch's time, however many streams there are, and one in each
 * new stream. */
static int meter_is_time(const struct meter *meter, const struct stream *stream, int64_t now)
{
    return !stream->marked || now - meter->marked >= METER_STRETCH;
}

/* Whether a mark is due after a launch. */
static int meter_is_due(const struct meter *meter, const struct stream *stream, int64_t now)
{
    return stream->tail.expected >= METER_STRETCH || stream->tail.unknown >= METER_UNKNOWN_TAIL ||
           meter_is_time(meter, stream, now);
}

struct plan meter_plan(struct meter *meter, int number, const struct work *work, int64_t now)
{
    struct stream *stream = &meter->stream[number];
    const struct expected expected = kinds_expect(work);
    struct plan plan = {.stream = number, .stretch = -1, .expected = expected.ns,
                        .idle = !stream->tail.launches && !stream->mark};
    int alone = meter_is_sample(meter, now) || expected.sample || expected.ns >= METER_STRETCH;
    int measured = !stream->mute && !stream->recording;
    if (work->overlaps && !plan.idle)
        alone = 0; /* an event in front of it would prevent that */
    if (measured && (plan.idle ? alone || meter_is_time(meter, stream, now)
                               : alone && (stream->tail.launches || !stream->mark)))
        plan.before = meter_mark(meter, number, &plan.stretch, now);
    if (plan.before)
        plan.before->idle = plan.idle;
    else if (measured && plan.idle)
        stream->mark = stretches_mark_by_clock(&meter->stretches, now);
    stream->tail.gap |= stream->tail.launches && now - stream->used > METER_GAP;
    stream->used = now;
    meter_add(&stream->tail, work, expected.ns, now);
    if (alone && stream->mark && stream->tail.launches == 1) {
        stream->tail.learn = *work;
        stream->tail.teaches = 1;
    }
    plan.after = measured && ((alone && !work->overlaps) || meter_is_due(meter, stream, now));
    return plan;
}

void meter_refuse(struct meter *meter, const struct plan *plan)
{
    struct tally *tail = &meter->stream[plan->stream].tail;
    if (!tail->launches)
        return;
    tail->launches--;
    tail->teaches = 0;
    if (plan->expected < 0)
        tail->unknown -= tail->unknown > 0;
    else
        tail->expected -= meter_smaller(tail->expected, plan->expected);
}

void meter_took(struct meter *meter, const struct plan *plan, int64_t begun, int64_t now, int64_t expected)
{
    struct tally *tail = &meter->stream[plan->stream].tail;
    const int64_t took = now - begun;
    if (tail->launches == 1) {
        tail->call = took;
        tail->first = now;
    }
    if (took < METER_LONG_CALL || plan->idle)
        return;
    if (tail->launches == 1) {
        tail->enqueued = now;
    } else if (!tail->unknown) {
        const int64_t idle = took - 2 * expected;
        tail->idle += idle > 0 ? idle : 0;
    }
}

/* --- marks --- */

int meter_is_tail_worth(const struct meter *meter, int number, int64_t now)
{
    const struct stream *stream = &meter->stream[number];
    if (!stream->tail.launches || !stream->mark || stream->mute || stream->recording)
        return 0;
    return stream->tail.expected >= METER_TAIL || stream->tail.unknown ||
           now - stream->marked >= METER_STRETCH;
}

struct mark *meter_mark(struct meter *meter, int number, int *stretch, int64_t now)
{
    struct stream *stream = &meter->stream[number];
    struct mark *mark = stretches_mark(&meter->stretches);
    *stretch = -1;
    if (!mark)
        return NULL;
    if (stream->mark && stream->tail.launches) {
        *stretch = stretches_begin(&meter->stretches, number, stream->mark, mark, &stream->tail);
        if (*stretch < 0) {
            stretches_drop(&meter->stretches, mark);
            return NULL;
        }
        stream->tail = (struct tally){0};
    } else {
        meter->owed += meter_end_tail(meter, stream, 0, now); /* what it was is not measured */
    }
    mark->recorded = now;
    mark->users++; /* the caller's, until meter_marked() */
    stream->mark = mark;
    stream->marked = meter->marked = now;
    stream->recording = 1;
    return mark;
}

void meter_marked(struct meter *meter, int number, struct mark *mark, int stretch, int failed)
{
    struct stream *stream = &meter->stream[number];
    stream->recording = 0;
    stretches_drop(&meter->stretches, mark);
    if (stretch >= 0 && !failed)
        stretches_recorded(&meter->stretches, stretch);
    if (!failed)
        return;
    stream->mute = 1;
    if (stretch >= 0) { /* its work is part of the tail again */
        const struct tally *lost = &meter->stretches.stretch[stretch].tally;
        stream->tail.first = lost->first;
        stream->tail.launches += lost->launches;
        stream->tail.unknown += lost->unknown;
        stream->tail.expected += lost->expected;
        stretches_cancel(&meter->stretches, stretch);
    }
    if (stream->mark == mark) {
        stretches_drop(&meter->stretches, mark);
        stream->mark = NULL;
    }
    stream->tail.teaches = 0;
}

/* The number stays taken while stretches refer to it (meter_stream). */
void meter_end_stream(struct meter *meter, int number, int64_t now)
{
    struct stream *stream = &meter->stream[number];
    meter->owed += meter_end_tail(meter, stream, 0, now);
    if (!stream->recording)
        *stream = (struct stream){0};
}

struct use meter_close(struct meter *meter, int64_t now)
{
    struct use use = {0, now};
    const unsigned life = meter->life;
    for (int number = 0; number < METER_STREAMS; number++) {
        struct stream *stream = &meter->stream[number];
        use.since = stream->tail.launches ? meter_smaller(use.since, stream->tail.first) : use.since;
        use.ns += meter_end_tail(meter, stream, 0, now);
    }
    if (meter->stretches.open) {
        int64_t begun = meter->stretches.stretch[meter->stretches.order[0]].tally.first;
        use.ns += now - begun;
        use.since = meter_smaller(use.since, begun);
    }
    stretches_close(&meter->stretches, meter->users);
    memset(meter, 0, sizeof *meter);
    meter->life = life + 1;
    return use;
}
