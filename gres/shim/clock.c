#include "clock.h"

#include <time.h>

#define SECOND INT64_C(1000000000)

int64_t clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

int clock_sleep(int64_t ns)
{
    struct timespec pause = {.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
    return nanosleep(&pause, 0) != 0;
}
