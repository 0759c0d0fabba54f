#include "slice.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST (64 << 10) /* a slice of 16 GPUs has about 2 KiB */

static void slice_fail(const char *why)
{
    static const char before[] = "slipway: this session's share of the GPU cannot be read (";
    static const char after[] = "). Nothing can run on the GPU without it: start the session again.\n";
    if (write(2, before, sizeof before - 1) < 0 || write(2, why, strlen(why)) < 0 ||
        write(2, after, sizeof after - 1) < 0)
        _exit(1);
    _exit(1);
}

/* Digits only: strtoull accepts signs and spaces, and with a new glibc needs a symbol that old ones lack. */
static uint64_t slice_number(const char *text)
{
    uint64_t value = 0;
    if (!*text)
        slice_fail("an empty number");
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || value > (UINT64_MAX - 9) / 10)
            slice_fail("not a number");
        value = value * 10 + (uint64_t)(*text - '0');
    }
    return value;
}

static enum compute compute_of(const char *text)
{
    if (!strcmp(text, "limiter"))
        return COMPUTE_LIMITER;
    if (!strcmp(text, "mps"))
        return COMPUTE_MPS;
    if (strcmp(text, "none"))
        slice_fail("unknown compute");
    return COMPUTE_NONE;
}

static struct slice_device *last_device(struct slice *into)
{
    if (!into->count)
        slice_fail("no GPU in it");
    return &into->device[into->count - 1];
}

static void take_gpu(struct slice *into, const char *uuid)
{
    struct slice_device *device = &into->device[into->count];
    if (into->count == SLIPWAY_MAX_DEVICES || strlen(uuid) >= sizeof device->uuid)
        slice_fail("too many GPUs");
    strcpy(device->uuid, uuid);
    device->sm_percent = 100;
    into->count++;
}

static void take_line(struct slice *into, char *line)
{
    char *value = strchr(line, '=');
    if (!value)
        slice_fail("a line without =");
    *value++ = 0;
    if (!strcmp(line, "version")) {
        if (strcmp(value, "1"))
            slice_fail("made for another version of Slipway");
    } else if (!strcmp(line, "compute")) {
        into->compute = compute_of(value);
    } else if (!strcmp(line, "gpu")) {
        take_gpu(into, value);
    } else if (!strcmp(line, "memory")) {
        last_device(into)->memory = slice_number(value);
    } else if (!strcmp(line, "sm")) {
        uint64_t percent = slice_number(value);
        if (percent < 1 || percent > 100)
            slice_fail("a percent beyond 100");
        last_device(into)->sm_percent = (int)percent;
    }
}

static ssize_t read_all(char *text)
{
    ssize_t length = 0, got;
    int file = open(SLIPWAY_SLICE, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        slice_fail("no such file");
    while ((got = read(file, text + length, (size_t)(MOST - length))) > 0)
        length += got;
    close(file);
    if (got < 0 || length == MOST)
        slice_fail("no plain file");
    return length;
}

static struct slice *read_slice(void)
{
    char *rest, *text = malloc(MOST + 1);
    struct slice *parsed = calloc(1, sizeof *parsed);
    if (!text || !parsed)
        slice_fail("no memory");
    text[read_all(text)] = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        take_line(parsed, line);
    last_device(parsed); /* a slice without a GPU is invalid */
    free(text);
    return parsed;
}

/* Lock-free, since a child that is forked while another thread holds a lock would deadlock. Concurrent
 * callers read it, too, and the first result is kept. */
const struct slice *slice(void)
{
    static struct slice *known;
    struct slice *found = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
    if (found)
        return found;
    struct slice *parsed = read_slice();
    if (__atomic_compare_exchange_n(&known, &found, parsed, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return parsed;
    free(parsed);
    return found;
}

int slice_find(const char *uuid)
{
    const struct slice *found = slice();
    for (int index = 0; index < found->count; index++)
        if (!strcmp(found->device[index].uuid, uuid))
            return index;
    return -1;
}
