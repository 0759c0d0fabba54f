#include "trampolines.h"

#include "real.h"

void *trampoline_resolve(unsigned int number)
{
    void *found = real_function_or_error(trampoline_names[number]);
    __atomic_store_n(&trampoline_slots[number], found, __ATOMIC_RELEASE);
    return found;
}
