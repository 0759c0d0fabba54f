#include "cuda_guard.h"

#include <pthread.h>

static pthread_mutex_t guard = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void guard_enter(void)
{
    pthread_mutex_lock(&guard);
}

void guard_leave(void)
{
    pthread_mutex_unlock(&guard);
}

void guard_reset(void)
{
    guard = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
}
