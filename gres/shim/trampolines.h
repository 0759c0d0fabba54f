/* The driver's functions that are not wrapped, as exports of the shim: programs can be linked against it. */
#ifndef SLIPWAY_TRAMPOLINES_H
#define SLIPWAY_TRAMPOLINES_H

/* Called by trampolines.S at the first call of a function: its address in the real library, or of one that
 * returns "not supported", which is stored for the next calls. */
void *trampoline_resolve(unsigned int number);

/* By number; defined in trampolines.S. */
extern const char *const trampoline_names[];
extern void *trampoline_slots[];

#endif
