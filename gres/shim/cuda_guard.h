/* One thread at a time where the driver's own figures are compared (pools, graphs) or several records
 * change together (vmm). */
#ifndef SLIPWAY_CUDA_GUARD_H
#define SLIPWAY_CUDA_GUARD_H

/* Recursive: a thread may enter it again. */
void guard_enter(void);
void guard_leave(void);
/* In a child: the parent's thread that held it does not exist there. */
void guard_reset(void);

#endif
