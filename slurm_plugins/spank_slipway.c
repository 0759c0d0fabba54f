/* A task of a job with a share of a GPU starts inside its limits or not at all.
 *
 * Built against the site's Slurm (Makefile), named in plugstack.conf as
 *     required spank_slipway.so
 *
 * It runs as root in the task's process, before that switches to the user. A failure here ends only the
 * task. (task_post_fork would work as well, but an error there drains the node, which must not happen
 * because of a single job.)
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/spank.h>

#define JOBS "/run/slipway/gpu/jobs"
#define COMMAND "slipway-gpu"

SPANK_PLUGIN(slipway, 1)

static int exists(uint32_t job, const char *name)
{
    char path[128];

    snprintf(path, sizeof path, JOBS "/%u/%s", job, name);
    return access(path, F_OK) == 0;
}

/* The reason that Prolog recorded for not writing a slice. */
static void read_reason(uint32_t job, char *text, size_t size)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof path, JOBS "/%u/refused", job);
    file = fopen(path, "re");
    if (!file || !fgets(text, (int)size, file))
        snprintf(text, size, "it was not set up on this node");
    text[strcspn(text, "\n")] = '\0';
    if (file)
        fclose(file);
}

/* Slurm's variable in the task's environment. A user who forges it only stops their own job. */
static int holds_shards(spank_t spank)
{
    char text[16];

    return spank_getenv(spank, "SLURM_SHARDS_ON_NODE", text, sizeof text) == ESPANK_SUCCESS &&
           atoi(text) > 0;
}

/* Make the driver limit the job's cgroup (tier A); 0 on success. */
static int apply(uint32_t job)
{
    char id[16];
    int status;
    pid_t child;

    snprintf(id, sizeof id, "%u", job);
    child = fork();
    if (child < 0)
        return -1;
    if (child == 0) {
        /* The user's environment must not reach a program that runs as root. */
        clearenv();
        setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
        setenv("SLURM_JOB_ID", id, 1);
        execlp(COMMAND, COMMAND, "apply", (char *)NULL);
        _exit(127);
    }
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

static int refuse(const char *why)
{
    slurm_error("This job's share of a GPU cannot be fenced, so it does not start: %s. "
                "Please tell the administrators.", why);
    return -1; /* Slurm treats ESPANK_ERROR, which is positive, as a warning here */
}

int slurm_spank_task_init_privileged(spank_t spank, int argc, char *argv[])
{
    char why[256];
    uint32_t job;

    (void)argc;
    (void)argv;
    if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS)
        return refuse("Slurm does not say which job it is");
    if (exists(job, "slice"))
        return !exists(job, "limits") || apply(job) == 0
                   ? ESPANK_SUCCESS
                   : refuse("the driver did not take its limit");
    if (exists(job, "refused") || holds_shards(spank)) {
        read_reason(job, why, sizeof why);
        return refuse(why);
    }
    return ESPANK_SUCCESS;
}
