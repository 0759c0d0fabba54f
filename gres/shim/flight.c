#include "flight.h"

static int64_t flight_smaller(int64_t one, int64_t other) { return one < other ? one : other; }

struct flight {
    int64_t expected[METER_STREAMS]; /* ns, by stream */
    int64_t oldest;                  /* of the stream in question, */
    int64_t oldest_expected;         /* and how long it should take */
    uint32_t unknown;
    int waited_for;                  /* stretches that were not given up */
};

static void flight_add(struct flight *flight, const struct tally *tally, int stream, int own)
{
    flight->expected[stream] += tally->expected;
    flight->unknown += tally->unknown;
    if (stream != own || !tally->launches || tally->first >= flight->oldest)
        return;
    flight->oldest = tally->first;
    flight->oldest_expected = tally->expected;
}

static void flight_sum(const struct meter *meter, struct flight *flight, int own)
{
    for (int stream = 0; stream < meter->streams; stream++)
        flight_add(flight, &meter->stream[stream].tail, stream, own);
    for (int place = 0; place < meter->stretches.open; place++) {
        const struct stretch *stretch = &meter->stretches.stretch[meter->stretches.order[place]];
        if (stretch->given_up)
            continue;
        flight->waited_for++;
        flight_add(flight, &stretch->tally, stretch->stream, own);
    }
}

/* Measurements of this very function, from which its duration will be known. */
static int flight_same_unknown(const struct meter *meter, const struct work *work)
{
    int same = 0;
    for (int place = 0; place < meter->stretches.open; place++) {
        const struct stretch *stretch = &meter->stretches.stretch[meter->stretches.order[place]];
        same += stretch->tally.unknown && !stretch->given_up &&
                stretch->tally.learn.function == work->function;
    }
    return same;
}

/* Work in other streams is waited for only as far as it is more than what runs side by side: a long kernel in
 * one of them must not keep this one from launching. */
int flight_is_crowded(const struct meter *meter, int own, const struct work *work, int64_t now)
{
    struct flight flight = {.oldest = now};
    int64_t expected = 0;
    flight_sum(meter, &flight, own);
    const int64_t advanced = meter->stream[own].advanced;
    const int64_t latest = advanced > flight.oldest ? advanced : flight.oldest;
    for (int stream = 0; stream < meter->streams; stream++)
        expected += flight_smaller(flight.expected[stream], FLIGHT_WINDOW);
    return flight.expected[own] > FLIGHT_WINDOW || now - flight.oldest > FLIGHT_WINDOW ||
           (flight.expected[own] > FLIGHT_ENOUGH && now - latest > FLIGHT_LATE + 2 * flight.oldest_expected) ||
           flight.unknown >= FLIGHT_UNKNOWN || expected > FLIGHT_WINDOWS ||
           flight_same_unknown(meter, work) >= FLIGHT_SAME ||
           (meter->stretches.open == STRETCHES && flight.waited_for);
}

void flight_advance(struct meter *meter, const struct look *look, int64_t now)
{
    for (int at = 0; at < look->count; at++)
        if (look->at[at].state != EVENTS_PENDING)
            meter->stream[look->at[at].stream].advanced = now;
}

int64_t flight_expected(const struct meter *meter, int stream)
{
    struct flight flight = {0};
    flight_sum(meter, &flight, stream);
    return flight.expected[stream];
}

int64_t flight_patience(const struct meter *meter, int own)
{
    return flight_smaller(FLIGHT_PATIENCE + 2 * flight_expected(meter, own), FLIGHT_MOST_PATIENCE);
}

void flight_give_up(struct meter *meter, int stream, int64_t now)
{
    meter->stream[stream].tail.first = now;
    for (int place = 0; place < meter->stretches.open; place++) {
        struct stretch *stretch = &meter->stretches.stretch[meter->stretches.order[place]];
        if (stretch->stream == stream || stretch->tally.unknown || meter->stretches.open == STRETCHES)
            stretch->given_up = 1;
    }
}
