/* SLIPWAY_COUNTERS as a file: opening, identifying and locking bytes of it. */
#define _GNU_SOURCE
#include "counters.h"

#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIGH_DESCRIPTOR 200 /* programs expect theirs to be the low ones */

/* fcntl() itself is a cancellation point, and has several symbol versions. */
int file_lock(int descriptor, int command, short type, off_t byte, struct flock *found)
{
    struct flock area = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    long result;
    do
        result = syscall(SYS_fcntl, descriptor, command, &area);
    while (result < 0 && errno == EINTR);
    if (found)
        *found = area;
    return (int)result;
}

off_t file_identify(int descriptor, struct file_id *id)
{
    struct stat now;
    if (descriptor < 0 || syscall(SYS_fstat, descriptor, &now)) /* likewise for fstat() */
        return -1;
    *id = (struct file_id){now.st_dev, now.st_ino};
    return now.st_size;
}

int is_file(int descriptor, const struct file_id *id)
{
    struct file_id now;
    return file_identify(descriptor, &now) >= 0 && now.device == id->device && now.inode == id->inode;
}

int open_counters(void)
{
    int low = open(SLIPWAY_COUNTERS, O_RDWR | O_CLOEXEC);
    if (low < 0)
        return -1;
    int high = (int)syscall(SYS_fcntl, low, F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR);
    if (high < 0)
        return low;
    close(low);
    return high;
}
