/* Reads what root decided (SLIPWAY_SLICE, see shim.h). */
#include "shim.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST (64 << 10) /* a slice of 16 GPUs has about 2 KiB */

static struct slice the_slice;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static void end(const char *why)
{
    static const char before[] = "slipway: this session's share of the GPU cannot be read (";
    static const char after[] = "). Nothing can run on the GPU without it: start the session again.\n";
    if (write(2, before, sizeof before - 1) < 0 || write(2, why, strlen(why)) < 0 ||
        write(2, after, sizeof after - 1) < 0)
        _exit(1);
    _exit(1);
}

/* Digits alone: strtoull takes signs, spaces and, with a new C library, a symbol that old ones lack. */
static uint64_t number(const char *text)
{
    uint64_t value = 0;
    if (!*text)
        end("an empty number");
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || value > (UINT64_MAX - 9) / 10)
            end("not a number");
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
        end("unknown compute");
    return COMPUTE_NONE;
}

static struct slice_device *last_device(void)
{
    if (!the_slice.count)
        end("no GPU in it");
    return &the_slice.device[the_slice.count - 1];
}

static void take_gpu(const char *uuid)
{
    struct slice_device *device = &the_slice.device[the_slice.count];
    if (the_slice.count == SLIPWAY_MAX_DEVICES || strlen(uuid) >= sizeof device->uuid)
        end("too many GPUs");
    strcpy(device->uuid, uuid);
    device->sm_percent = 100;
    the_slice.count++;
}

static void take_line(char *line)
{
    char *value = strchr(line, '=');
    if (!value)
        end("a line without =");
    *value++ = 0;
    if (!strcmp(line, "version")) {
        if (strcmp(value, "1"))
            end("made for another version of Slipway");
    } else if (!strcmp(line, "compute")) {
        the_slice.compute = compute_of(value);
    } else if (!strcmp(line, "gpu")) {
        take_gpu(value);
    } else if (!strcmp(line, "memory")) {
        last_device()->memory = number(value);
    } else if (!strcmp(line, "sm")) {
        uint64_t percent = number(value);
        if (percent < 1 || percent > 100)
            end("a percent beyond 100");
        last_device()->sm_percent = (int)percent;
    }
}

static ssize_t read_all(char *text)
{
    ssize_t length = 0, got;
    int file = open(SLIPWAY_SLICE, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        end("no such file");
    while ((got = read(file, text + length, (size_t)(MOST - length))) > 0)
        length += got;
    close(file);
    if (got < 0 || length == MOST)
        end("no plain file");
    return length;
}

static void read_slice(void)
{
    char *rest, *text = malloc(MOST + 1);
    if (!text)
        end("no memory");
    text[read_all(text)] = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        take_line(line);
    last_device(); /* a slice without a GPU is none */
    free(text);
}

const struct slice *slice(void)
{
    static int done;
    if (__atomic_load_n(&done, __ATOMIC_ACQUIRE))
        return &the_slice;
    pthread_mutex_lock(&guard);
    if (!done) {
        read_slice();
        __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&guard);
    return &the_slice;
}

int slice_find(const char *uuid)
{
    const struct slice *found = slice();
    for (int index = 0; index < found->count; index++)
        if (!strcmp(found->device[index].uuid, uuid))
            return index;
    return -1;
}
