/* Paths and sizes that all parts of the shim share.
 *
 * The shim replaces libcuda.so.1 and libnvidia-ml.so.1 inside a container. Each of the two names the
 * real library as its dependency (by an absolute path, SLIPWAY_DRIVER), so the dynamic linker finds
 * whatever is not wrapped here in the real one.
 *
 * Root decides the slice and writes it to SLIPWAY_SLICE (slice.h has the format), which nobody else may
 * write. It also creates SLIPWAY_COUNTERS (SLIPWAY_COUNTERS_SIZE zero bytes, owned by the job's user), in
 * which all processes of the session count together (ledger.h, limiter.h).
 */
#ifndef SLIPWAY_SHIM_H
#define SLIPWAY_SHIM_H

#ifndef SLIPWAY_DIRECTORY /* the tests build with another one */
#define SLIPWAY_DIRECTORY "/opt/slipway-gpu"
#endif
#define SLIPWAY_SLICE SLIPWAY_DIRECTORY "/slice"
#define SLIPWAY_COUNTERS SLIPWAY_DIRECTORY "/counters"
#define SLIPWAY_LOAD SLIPWAY_DIRECTORY "/load" /* root's, too: load.h */
#define SLIPWAY_DRIVER SLIPWAY_DIRECTORY "/driver"
#define SLIPWAY_COUNTERS_SIZE (1 << 20)
#define SLIPWAY_MAX_DEVICES 16
#define SLIPWAY_LIMITER_OFFSET (32 << 10) /* of the limiter's part of the counters, which it maps itself */
#define SLIPWAY_LIMITER_SIZE (32 << 10)

#endif
