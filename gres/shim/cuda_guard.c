#include "cuda_guard.h"

#include <pthread.h>

static pthread_mutex_t guard_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void guard_enter(void)
{
    pthread_mutex_lock(&guard_lock);
}

void guard_leave(void)
{
    pthread_mutex_unlock(&guard_lock);
}

void guard_reset(void)
{
    guard_lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
}
