/* What load_of() tells of each GPU, now and after each line of its input; "fork" asks in a child. */
#include "load.h"
#include "slice.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void tell(void)
{
    for (int device = -1; device <= slice()->count; device++) {
        struct load load;
        if (load_of(device, &load))
            printf("none ");
        else
            printf("%d,%lld,%d,%d ", load.busy, (long long)load.memory, load.charge, load.percent);
    }
    printf("\n");
    fflush(stdout);
}

int main(void)
{
    char line[64];
    tell();
    while (fgets(line, sizeof line, stdin)) {
        if (strcmp(line, "fork\n")) {
            tell();
        } else if (!fork()) {
            tell();
            _exit(0);
        } else {
            wait(NULL);
        }
    }
    return 0;
}
