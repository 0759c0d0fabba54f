/* Serialises code that compares the driver's own figures (pools, graphs) or changes several records
 * together (vmm). */
#ifndef SLIPWAY_CUDA_GUARD_H
#define SLIPWAY_CUDA_GUARD_H

/* Recursive: a thread may enter it again. */
void guard_enter(void);
void guard_leave(void);
/* In a child: the parent's thread that held it does not exist there. */
void guard_reset(void);

#endif
