/* A session's program that keeps the GPU busy: share_client LIBRARY MICROSECONDS
 * launches kernels of so many microseconds from the first line of its input until it is killed, and waits after
 * each fourth, as programs do that look at a result. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef int function(); /* of the driver, with whatever parameters it has */

static void *library;

static function *find(const char *name)
{
    function *found = (function *)dlsym(library, name);
    if (!found) {
        fprintf(stderr, "no %s\n", name);
        exit(1);
    }
    return found;
}

static void must(int result, const char *what)
{
    if (result) {
        fprintf(stderr, "%s: %d\n", what, result);
        exit(1);
    }
}

int main(int count, char **words)
{
    char line[16];
    void *context, *module, *kernel;
    library = count > 2 ? dlopen(words[1], RTLD_NOW) : NULL;
    if (!library) {
        fprintf(stderr, "%s\n", count > 2 ? dlerror() : "which library, how long?");
        return 1;
    }
    unsigned us = (unsigned)atoi(words[2]);
    must(find("cuInit")(0), "cuInit");
    must(find("cuCtxCreate_v2")(&context, 0, 0), "cuCtxCreate_v2");
    must(find("cuModuleLoadData")(&module, ""), "cuModuleLoadData");
    must(find("cuModuleGetFunction")(&kernel, module, "kernel"), "cuModuleGetFunction");
    function *launch = find("cuLaunchKernel"), *wait = find("cuCtxSynchronize");
    void *parameters[] = {&us};
    puts("ready");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        return 0;
    for (unsigned number = 1;; number++) {
        must(launch(kernel, 8, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL), "cuLaunchKernel");
        if (number % 4 == 0)
            must(wait(), "cuCtxSynchronize");
    }
}
