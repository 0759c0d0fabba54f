/* The shim is loaded by programs of any image, so it must not need symbols newer than glibc 2.17 (2012),
 * although it is built with a newer one. Newer releases gave some functions new symbol versions without
 * changing their behaviour; this tells the linker to use the old ones. Included by every file of the
 * shim (-include in the Makefile); check_glibc.sh fails the build if one was forgotten.
 *
 * On AArch64 all symbols start at 2.17, which old containers of that architecture have as well.
 */
#ifndef SLIPWAY_GLIBC_COMPAT_H
#define SLIPWAY_GLIBC_COMPAT_H

#ifndef _GNU_SOURCE /* before the first header of the system; files may still say it themselves */
#define _GNU_SOURCE
#endif

#if defined(__x86_64__)
#define SLIPWAY_OLD "GLIBC_2.2.5"
#define SLIPWAY_C99 "GLIBC_2.7"
#elif defined(__aarch64__)
#define SLIPWAY_OLD "GLIBC_2.17"
#define SLIPWAY_C99 SLIPWAY_OLD
#else
#error "The shim is for x86-64 and AArch64"
#endif

/* Names that a file does not use have no effect. */
#define SLIPWAY_TAKE(used, old, version) __asm__(".symver " #used "," #old "@" version)
#define SLIPWAY_TAKE_OLD(used, old) SLIPWAY_TAKE(used, old, SLIPWAY_OLD)

/* 2.34 moved libdl and libpthread into libc. In old images the real driver's own dependencies load them,
 * and symbols are searched in all libraries of a program. */
SLIPWAY_TAKE_OLD(dlopen, dlopen);
SLIPWAY_TAKE_OLD(dlsym, dlsym);
SLIPWAY_TAKE_OLD(dlclose, dlclose);
SLIPWAY_TAKE_OLD(dlerror, dlerror);
SLIPWAY_TAKE_OLD(dladdr, dladdr);
SLIPWAY_TAKE_OLD(pthread_once, pthread_once);
SLIPWAY_TAKE_OLD(pthread_create, pthread_create);
SLIPWAY_TAKE_OLD(pthread_join, pthread_join);
SLIPWAY_TAKE_OLD(pthread_detach, pthread_detach);
SLIPWAY_TAKE_OLD(pthread_sigmask, pthread_sigmask);
SLIPWAY_TAKE_OLD(pthread_key_create, pthread_key_create);
SLIPWAY_TAKE_OLD(pthread_getspecific, pthread_getspecific);
SLIPWAY_TAKE_OLD(pthread_setspecific, pthread_setspecific);
SLIPWAY_TAKE_OLD(pthread_mutex_trylock, pthread_mutex_trylock);
SLIPWAY_TAKE_OLD(pthread_mutexattr_init, pthread_mutexattr_init);
SLIPWAY_TAKE_OLD(pthread_mutexattr_settype, pthread_mutexattr_settype);
SLIPWAY_TAKE_OLD(pthread_rwlock_rdlock, pthread_rwlock_rdlock);
SLIPWAY_TAKE_OLD(pthread_rwlock_wrlock, pthread_rwlock_wrlock);
SLIPWAY_TAKE_OLD(pthread_rwlock_unlock, pthread_rwlock_unlock);

/* 2.28: fcntl64, which on these architectures equals fcntl. */
SLIPWAY_TAKE_OLD(fcntl64, fcntl);

/* 2.38: C23 numbers, with 0b for binary. */
SLIPWAY_TAKE_OLD(__isoc23_strtol, strtol);
SLIPWAY_TAKE_OLD(__isoc23_strtoll, strtoll);
SLIPWAY_TAKE_OLD(__isoc23_strtoul, strtoul);
SLIPWAY_TAKE_OLD(__isoc23_strtoull, strtoull);
SLIPWAY_TAKE(__isoc23_sscanf, __isoc99_sscanf, SLIPWAY_C99);
SLIPWAY_TAKE(__isoc23_fscanf, __isoc99_fscanf, SLIPWAY_C99);

/* 2.33: stat and its family became functions, replacing those that take the layout's version. */
#include <sys/stat.h>

#if defined(__x86_64__)
#define SLIPWAY_STAT_VERSION 1
#else
#define SLIPWAY_STAT_VERSION 0
#endif
SLIPWAY_TAKE_OLD(__fxstat, __fxstat);
SLIPWAY_TAKE_OLD(__xstat, __xstat);
int __fxstat(int version, int file, struct stat *found);
int __xstat(int version, const char *path, struct stat *found);

static inline int slipway_fstat(int file, struct stat *found)
{
    return __fxstat(SLIPWAY_STAT_VERSION, file, found);
}

static inline int slipway_stat(const char *path, struct stat *found)
{
    return __xstat(SLIPWAY_STAT_VERSION, path, found);
}

#define fstat(file, found) slipway_fstat(file, found)
#define stat(path, found) slipway_stat(path, found) /* `struct stat` has no argument list */

#endif
