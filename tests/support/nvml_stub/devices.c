/* Entry points: what one GPU or MIG device is. */
#include <stdio.h>
#include <string.h>

#include "node.h"

static const unsigned long long MIB = 1ULL << 20;
static const unsigned long long NOT_AVAILABLE = ~0ULL;

static int copy(char *text, unsigned size, const char *value)
{
    return snprintf(text, size, "%s", value) < (int)size ? SUCCESS : INSUFFICIENT_SIZE;
}

API int nvmlDeviceGetName(void *handle, char *name, unsigned size)
{
    BEGIN_ON(handle);
    char text[192];
    if (!on.instance)
        return copy(name, size, on.gpu->name);
    snprintf(text, sizeof text, "%s MIG %s", on.gpu->name, on.instance->name);
    return copy(name, size, text);
}

API int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned size)
{
    BEGIN_ON(handle);
    return copy(uuid, size, on.instance ? on.instance->uuid : on.gpu->uuid);
}

API int nvmlDeviceGetMinorNumber(void *handle, unsigned *minor)
{
    BEGIN_ON(handle);
    *minor = (unsigned)on.gpu->minor;
    return on.instance ? NOT_SUPPORTED : SUCCESS;
}

API int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor)
{
    BEGIN_ON(handle);
    *major = (int)on.gpu->model->major;
    *minor = (int)on.gpu->model->minor;
    return SUCCESS;
}

API int nvmlDeviceGetMemoryInfo(void *handle, struct memory_info *memory)
{
    BEGIN_ON(handle);
    memory->total = (on.instance ? on.instance->profile->memory_mib : on.gpu->memory_mib) * MIB;
    memory->used = 4 * MIB;
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

API int nvmlDeviceGetPciInfo_v3(void *handle, struct pci_info *pci)
{
    BEGIN_ON(handle);
    const struct gpu *gpu = on.gpu;
    *pci = (struct pci_info){.domain = gpu->domain, .bus = gpu->bus, .device = gpu->device, .device_id = 0x10de};
    snprintf(pci->bus_id_legacy, sizeof pci->bus_id_legacy, "%04X:%02X:%02X.0", gpu->domain & 0xffff, gpu->bus & 0xff,
             gpu->device & 0xff);
    snprintf(pci->bus_id, sizeof pci->bus_id, "%08X:%02X:%02X.0", gpu->domain, gpu->bus, gpu->device);
    return SUCCESS;
}

API int nvmlDeviceGetFieldValues(void *handle, int count, struct field_value *fields)
{
    BEGIN_ON(handle);
    for (int i = 0; i < count; i++) {
        int is_told = fields[i].field == RECOVERY_ACTION && on.gpu->recovery;
        fields[i].result = is_told ? SUCCESS : NOT_SUPPORTED;
        fields[i].value.number = is_told ? (unsigned)on.gpu->recovery - 1 : 0;
    }
    return SUCCESS;
}

static int is_on(const struct process *process, const struct target *target)
{
    return !target->instance || process->gpu_instance == target->instance->id;
}

API int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, struct process_info *processes)
{
    BEGIN_ON(handle);
    unsigned room = processes ? *count : 0;
    *count = 0;
    for (unsigned i = 0; i < on.gpu->process_count; i++) {
        const struct process *process = &on.gpu->processes[i];
        if (!is_on(process, &on))
            continue;
        if (*count < room)
            processes[*count] = (struct process_info){
                .pid = process->pid,
                .used_memory = process->mib < 0 ? NOT_AVAILABLE : (unsigned long long)process->mib * MIB,
                .gpu_instance = process->gpu_instance,
                .compute_instance = process->gpu_instance == NO_INSTANCE ? NO_INSTANCE : 0,
            };
        (*count)++;
    }
    return *count > room ? INSUFFICIENT_SIZE : SUCCESS;
}
