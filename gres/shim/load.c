#define _GNU_SOURCE
#include "load.h"

#include "clock.h"
#include "slice.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define MOST (16 << 10)                   /* 16 GPUs of about 150 bytes are 2.5 KiB */
#define REREAD INT64_C(500000000)         /* ns: half the watchdog's pause */
#define OLD INT64_C(5000000000)           /* ns: a watchdog that missed five polls is not running */

/* Each field is atomic by itself: that two of them may be of different polls does no harm, and no reader ever
 * waits. */
struct cached {
    int64_t time, memory;
    int busy, charge, percent;
};
static struct cached cache[SLIPWAY_MAX_DEVICES];
static int64_t tried; /* when the file was read last */

#define GET(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define SET(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)

static int load_number(const char *text, int64_t *value)
{
    *value = 0;
    if (!*text)
        return -1;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || *value > (INT64_MAX - 9) / 10)
            return -1;
        *value = *value * 10 + (*text - '0');
    }
    return 0;
}

static int load_within(const char *text, int64_t least, int64_t most, int *value)
{
    int64_t found;
    if (load_number(text, &found) || found < least || found > most)
        return -1;
    *value = (int)found;
    return 0;
}

/* One line of a GPU's block; unknown names are not an error. */
static int load_gpu_line(struct cached *gpu, const char *name, const char *value)
{
    if (!strcmp(name, "busy"))
        return load_within(value, 0, 1000, &gpu->busy);
    if (!strcmp(name, "memory"))
        return load_number(value, &gpu->memory);
    if (!strcmp(name, "charge"))
        return load_within(value, 1, 1000, &gpu->charge);
    if (!strcmp(name, "percent"))
        return load_within(value, 1, 100, &gpu->percent);
    return 0;
}

static int load_line(struct cached *found, int *at, int64_t *time, char *line)
{
    char *value = strchr(line, '=');
    if (!value)
        return -1;
    *value++ = 0;
    if (!strcmp(line, "version"))
        return strcmp(value, "1");
    if (!strcmp(line, "time"))
        return load_number(value, time);
    if (!strcmp(line, "gpu")) {
        *at = slice_find(value);
        if (*at >= 0)
            found[*at].time = *time;
        return *at < 0;
    }
    return *at < 0 ? 0 : load_gpu_line(&found[*at], line, value);
}

/* 0 only if every line is valid. */
static int load_parse(char *text, struct cached *found)
{
    int at = -1;
    int64_t time = 0;
    char *rest;
    for (int index = 0; index < SLIPWAY_MAX_DEVICES; index++)
        found[index] = (struct cached){.busy = -1, .charge = 1000};
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (load_line(found, &at, &time, line))
            return -1;
    return 0;
}

static int load_read(struct cached *found)
{
    char text[MOST];
    size_t length = 0;
    ssize_t got = 0;
    int file = open(SLIPWAY_LOAD, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    while (length < sizeof text && (got = read(file, text + length, sizeof text - length)) > 0)
        length += (size_t)got;
    close(file);
    if (got < 0 || length == sizeof text)
        return -1;
    text[length] = 0;
    return load_parse(text, found);
}

static void load_refresh(int64_t now)
{
    struct cached found[SLIPWAY_MAX_DEVICES];
    int64_t last = GET(tried);
    if ((last && now - last < REREAD) ||
        !__atomic_compare_exchange_n(&tried, &last, now, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return; /* another thread reads it now; what was known before is recent enough */
    if (load_read(found))
        memset(found, 0, sizeof found); /* the time is that of no figures */
    for (int index = 0; index < SLIPWAY_MAX_DEVICES; index++) {
        SET(cache[index].memory, found[index].memory);
        SET(cache[index].busy, found[index].busy);
        SET(cache[index].charge, found[index].charge);
        SET(cache[index].percent, found[index].percent);
        SET(cache[index].time, found[index].time);
    }
}

int load_of(int device, struct load *load)
{
    int64_t now = clock_now();
    if (device < 0 || device >= SLIPWAY_MAX_DEVICES)
        return -1;
    load_refresh(now);
    const struct cached *gpu = &cache[device];
    *load = (struct load){.time = GET(gpu->time), .busy = GET(gpu->busy), .memory = GET(gpu->memory),
                          .charge = GET(gpu->charge), .percent = GET(gpu->percent)};
    int known = load->time && load->percent && load->charge;
    return known && load->time <= now && now - load->time <= OLD ? 0 : -1;
}
