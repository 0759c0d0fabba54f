/* Lets a program built here start in old images: the compiler's start code asks for glibc 2.34's
 * __libc_start_main, which differs from the first one only in running the program's constructors, of
 * which there are none here. The linker sends that call to the function below (--wrap in the Makefile).
 */
#if defined(__x86_64__)
#define FIRST "GLIBC_2.2.5"
#else
#define FIRST "GLIBC_2.17"
#endif

typedef int program(int, char **, char **);
typedef void hook(void);

int first_start_main(program *, int, char **, hook *, hook *, hook *, void *);
__asm__(".symver first_start_main,__libc_start_main@" FIRST);

__attribute__((visibility("default"))) int __wrap___libc_start_main(program *, int, char **, hook *,
                                                                    hook *, hook *, void *);

int __wrap___libc_start_main(program *start, int count, char **words, hook *begin, hook *end,
                             hook *loader_end, void *stack)
{
    return first_start_main(start, count, words, begin, end, loader_end, stack);
}
