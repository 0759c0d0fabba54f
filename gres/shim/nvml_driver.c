#include "nvml_driver.h"

#include "nvml_wrap.h"


NEEDS(nvmlSystemGetDriverVersion, char *text, unsigned int length);

/* Major and minor version; from NVIDIA's open kernel modules, which have one commit for each release. */
static const int since[][2] = {
    [NVML_PIDS_OF_LISTS] = {535, 113},
    [NVML_PIDS_OF_MEMORY] = {565, 57},
    [NVML_PIDS_OF_SAMPLES] = {570, 86},
};

/* One number of a version; leaves *text behind the dot after it. */
static int next_number(const char **text)
{
    int number = 0;
    for (; **text >= '0' && **text <= '9' && number < 100000; (*text)++)
        number = number * 10 + (**text - '0');
    *text += **text == '.';
    return number;
}

/* The driver's version does not change while it is loaded; 0 before NVML is initialised. Concurrent callers
 * find the same. */
static int driver_version(int *minor)
{
    static int known_major, known_minor;
    char text[96] = "";
    const char *rest = text;
    int major = __atomic_load_n(&known_major, __ATOMIC_ACQUIRE);
    if (!major && !real_nvmlSystemGetDriverVersion(text, sizeof text)) {
        major = next_number(&rest);
        __atomic_store_n(&known_minor, next_number(&rest), __ATOMIC_RELAXED);
        __atomic_store_n(&known_major, major, __ATOMIC_RELEASE);
    }
    *minor = __atomic_load_n(&known_minor, __ATOMIC_RELAXED);
    return major;
}

int nvml_translates(enum nvml_pids pids)
{
    int minor;
    const int major = driver_version(&minor);
    return major > since[pids][0] || (major == since[pids][0] && minor >= since[pids][1]);
}

HOOKS(nvml_driver, NEEDED(nvmlSystemGetDriverVersion))
