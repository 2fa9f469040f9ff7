/* Entry points: MIG. */
#include "node.h"

API int nvmlDeviceGetMigMode(void *handle, unsigned *current, unsigned *pending)
{
    BEGIN_ON(handle);
    if (on.instance || !on.gpu->model->profile_count)
        return NOT_SUPPORTED;
    *current = *pending = (unsigned)on.gpu->is_split;
    return SUCCESS;
}

API int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned *count)
{
    BEGIN_ON(handle);
    *count = on.gpu->model->profile_count && !on.instance ? 7 : 0;
    return SUCCESS;
}

API int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned index, void **found)
{
    BEGIN_ON(handle);
    if (on.instance || !on.gpu->model->profile_count)
        return on.instance ? INVALID_ARGUMENT : NOT_SUPPORTED;
    if (!on.gpu->is_split || index >= on.gpu->instance_count || !on.gpu->instances[index].profile)
        return NOT_FOUND;
    *found = handle_of(on.gpu, &on.gpu->instances[index]);
    return SUCCESS;
}

API int nvmlDeviceGetGpuInstanceId(void *handle, unsigned *id)
{
    BEGIN_ON(handle);
    if (!on.instance)
        return NOT_SUPPORTED;
    *id = on.instance->id;
    return SUCCESS;
}

API int nvmlDeviceGetComputeInstanceId(void *handle, unsigned *id)
{
    BEGIN_ON(handle);
    if (!on.instance)
        return NOT_SUPPORTED;
    *id = 0;
    return SUCCESS;
}

API int nvmlDeviceGetAttributes_v2(void *handle, struct attributes *attributes)
{
    BEGIN_ON(handle);
    if (!on.instance)
        return NOT_SUPPORTED;
    const struct profile *profile = on.instance->profile;
    *attributes = (struct attributes){
        .multiprocessors = profile->multiprocessors * on.instance->compute_slices / profile->slices,
        .copy = profile->copy,
        .decoder = profile->decoder,
        .encoder = profile->encoder,
        .jpeg = profile->jpeg,
        .ofa = profile->ofa,
        .gpu_slices = profile->slices,
        .compute_slices = on.instance->compute_slices,
        .memory_mib = profile->memory_mib,
    };
    return SUCCESS;
}
