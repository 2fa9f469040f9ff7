/* Entry points: connecting, versions, handles. */
#include <pthread.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>

#include "node.h"

int users;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

int lock(void)
{
    return pthread_mutex_lock(&mutex);
}

void unlock(const int *guard)
{
    (void)guard;
    pthread_mutex_unlock(&mutex);
}

void *handle_of(const struct gpu *gpu, const struct instance *instance)
{
    uintptr_t number = (uintptr_t)gpu->index + 1;
    if (instance)
        number |= (uintptr_t)(instance - gpu->instances + 1) << 8 | (uintptr_t)gpu->layout << 16;
    return (void *)number;
}

int find_target(void *handle, struct target *found)
{
    uintptr_t number = (uintptr_t)handle;
    unsigned gpu = number & 0xff, instance = number >> 8 & 0xff, layout = (unsigned)(number >> 16);
    if (gpu == 0 || gpu > (unsigned)node.gpu_count)
        return INVALID_ARGUMENT;
    *found = (struct target){.gpu = &node.gpus[gpu - 1]};
    if (!instance)
        return SUCCESS;
    if (layout != found->gpu->layout || instance > found->gpu->instance_count)
        return INVALID_ARGUMENT;
    found->instance = &found->gpu->instances[instance - 1];
    return SUCCESS;
}

API int nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    LOCKED;
    if (!users) {
        if (read_description())
            return UNKNOWN;
        skip_control();
    }
    users++;
    int failure = begin(__func__);
    if (failure)
        users--;
    return failure;
}

API int nvmlShutdown(void)
{
    BEGIN;
    users--;
    return SUCCESS;
}

API int nvmlSystemGetDriverVersion(char *version, unsigned size)
{
    BEGIN;
    return snprintf(version, size, "%s", node.driver) < (int)size ? SUCCESS : INSUFFICIENT_SIZE;
}

API int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    BEGIN;
    *version = node.cuda;
    return SUCCESS;
}

API int nvmlDeviceGetCount_v2(unsigned *count)
{
    BEGIN;
    *count = (unsigned)node.gpu_count;
    return SUCCESS;
}

API int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle)
{
    BEGIN;
    if (index >= (unsigned)node.gpu_count)
        return INVALID_ARGUMENT;
    *handle = handle_of(&node.gpus[index], NULL);
    return SUCCESS;
}
