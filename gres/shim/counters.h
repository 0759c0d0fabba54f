/* SLIPWAY_COUNTERS as a file. */
#ifndef SLIPWAY_COUNTERS_H
#define SLIPWAY_COUNTERS_H

#include <fcntl.h>
#include <sys/types.h>

int open_counters(void); /* a descriptor, or -1 */

/* `command` is F_OFD_SETLK, F_OFD_SETLKW or F_OFD_GETLK, `found` the result of the last one, else NULL. */
int file_lock(int descriptor, int command, short type, off_t byte, struct flock *found);

/* Identifies the file: the program may have closed our descriptor and reused its number. */
struct file_id {
    dev_t device;
    ino_t inode;
};
off_t file_identify(int descriptor, struct file_id *id); /* its size, or -1 */
int is_file(int descriptor, const struct file_id *id);

#endif
