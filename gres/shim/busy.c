#include "busy.h"

#include <string.h>

static void busy_remove(struct busy *busy, int at)
{
    busy->count--;
    memmove(busy->span + at, busy->span + at + 1, (size_t)(busy->count - at) * sizeof *busy->span);
}

static void busy_close_smallest_gap(struct busy *busy)
{
    int smallest = 0;
    for (int at = 1; at + 1 < busy->count; at++)
        if (busy->span[at + 1].from - busy->span[at].to <
            busy->span[smallest + 1].from - busy->span[smallest].to)
            smallest = at;
    busy->span[smallest].to = busy->span[smallest + 1].to;
    busy_remove(busy, smallest + 1);
}

int64_t busy_add(struct busy *busy, int64_t from, int64_t to)
{
    int at = 0;
    int64_t added = to - from;
    if (added <= 0)
        return 0;
    if (busy->count == BUSY_SPANS)
        busy_close_smallest_gap(busy);
    while (at < busy->count && busy->span[at].to < from)
        at++;
    while (at < busy->count && busy->span[at].from <= to) { /* becomes a part of the new one */
        const struct busy_span old = busy->span[at];
        added -= (old.to < to ? old.to : to) - (old.from > from ? old.from : from);
        from = old.from < from ? old.from : from;
        to = old.to > to ? old.to : to;
        busy_remove(busy, at);
    }
    memmove(busy->span + at + 1, busy->span + at, (size_t)(busy->count - at) * sizeof *busy->span);
    busy->span[at] = (struct busy_span){from, to};
    busy->count++;
    return added;
}

int64_t busy_fill(struct busy *busy, int64_t from, int64_t to, int64_t ns)
{
    int64_t added = 0;
    while (from < to && added < ns) {
        int at = 0;
        while (at < busy->count && busy->span[at].to <= from)
            at++;
        int64_t end = from + ns - added < to ? from + ns - added : to;
        if (at < busy->count && busy->span[at].from <= from) {
            from = busy->span[at].to;
            continue;
        }
        if (at < busy->count && busy->span[at].from < end)
            end = busy->span[at].from;
        added += busy_add(busy, from, end);
        from = end;
    }
    return added;
}

void busy_forget(struct busy *busy, int64_t before)
{
    while (busy->count && busy->span[0].to < before)
        busy_remove(busy, 0);
}
