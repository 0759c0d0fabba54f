/* The meters of all contexts of this process, and what the session is charged. Calls to the driver are made
 * without the lock; a function that makes some returns 0 if the context ended meanwhile, and with it all that the
 * caller knows about the meter. */
#ifndef SLIPWAY_METERS_H
#define SLIPWAY_METERS_H

#include "meter.h"

#include <pthread.h>
#include <stdint.h>

/* Guards all meters and what they consist of. Never held during a call to the driver, except for the destruction
 * of events. */
extern pthread_mutex_t meters_lock;

/* False for most sessions: those with whole GPUs or another way of sharing. Never called with the lock
 * held, since the first call takes the dynamic linker's. */
int meters_is_needed(void);

/* Takes the lock. The current context's meter; null if it is not limited, or was not used yet and `make` is
 * not set. */
struct meter *meters_enter(int make);

/* What follows is called with the lock held. */
int meters_look(struct meter *meter, int64_t now); /* charges what has ended; one thread at a time looks */
int meters_ask(struct meter *meter, int stream, int64_t now); /* for the state of a stream with a tail */
int meters_record(struct meter *meter, int stream, struct mark *mark, int stretch);
void meters_charge(struct meter *meter, struct use use, int64_t now);

/* How long the next launch has to wait for the session's share, in ns. */
int64_t meters_wait(const struct meter *meter, int64_t now);
int meters_percent(const struct meter *meter); /* the share at present */

/* Without the lock: ends the meters of a GPU's contexts, of which one is about to end. The others begin anew. */
void meters_forget(int cuda_device);

#endif
