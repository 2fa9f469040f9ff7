/* Entry points: how GPUs are connected. */
#include <string.h>

#include "node.h"

enum level { BOARD = 0, PCI_SWITCH = 10, HOST_BRIDGE = 30, NUMA_NODE = 40, SYSTEM = 50 };
enum { LINK_TO_GPU = 0, LINK_TO_SWITCH = 2 };

static int level_of(const struct gpu *one, const struct gpu *other)
{
    if (node.levels[one->index][other->index] >= 0)
        return node.levels[one->index][other->index];
    if (one == other || (one->board >= 0 && one->board == other->board))
        return BOARD;
    if (one->pci_switch >= 0 && one->pci_switch == other->pci_switch)
        return PCI_SWITCH;
    if (one->numa < 0 && other->numa < 0)
        return HOST_BRIDGE;
    return one->numa == other->numa ? NUMA_NODE : SYSTEM;
}

API int nvmlDeviceGetTopologyCommonAncestor(void *handle, void *other, unsigned *level)
{
    BEGIN_ON(handle);
    struct target second;
    if (find_target(other, &second))
        return INVALID_ARGUMENT;
    *level = (unsigned)level_of(on.gpu, second.gpu);
    return second.gpu->is_lost ? GPU_IS_LOST : SUCCESS;
}

API int nvmlDeviceGetNvLinkState(void *handle, unsigned link, unsigned *is_active)
{
    BEGIN_ON(handle);
    if (!on.gpu->link_count)
        return NOT_SUPPORTED;
    if (link >= on.gpu->link_count)
        return INVALID_ARGUMENT;
    *is_active = 1;
    return SUCCESS;
}

API int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *handle, unsigned link, struct pci_info *pci)
{
    BEGIN_ON(handle);
    if (link >= on.gpu->link_count)
        return INVALID_ARGUMENT;
    *pci = (struct pci_info){.bus = 0xC4 + link % 6};
    if (on.gpu->peers[link] != SWITCH) {
        const struct gpu *peer = &node.gpus[on.gpu->peers[link]];
        *pci = (struct pci_info){.domain = peer->domain, .bus = peer->bus, .device = peer->device};
    }
    return SUCCESS;
}

API int nvmlDeviceGetNvLinkRemoteDeviceType(void *handle, unsigned link, unsigned *type)
{
    BEGIN_ON(handle);
    if (link >= on.gpu->link_count)
        return INVALID_ARGUMENT;
    *type = on.gpu->peers[link] == SWITCH ? LINK_TO_SWITCH : LINK_TO_GPU;
    return SUCCESS;
}

static int has_fabric(const struct gpu *gpu)
{
    return gpu->model->major >= 9;
}

API int nvmlDeviceGetGpuFabricInfo(void *handle, struct fabric_info *info)
{
    BEGIN_ON(handle);
    if (!has_fabric(on.gpu))
        return NOT_SUPPORTED;
    *info = (struct fabric_info){.clique = node.clique, .state = node.has_fabric ? FABRIC_COMPLETED : 0};
    memcpy(info->cluster, node.cluster, sizeof info->cluster);
    return SUCCESS;
}

API int nvmlDeviceGetGpuFabricInfoV(void *handle, struct fabric_info_v *info)
{
    BEGIN_ON(handle);
    unsigned version = info->version;
    if (!has_fabric(on.gpu))
        return NOT_SUPPORTED;
    if (version >> 24 < 2)
        return ARGUMENT_VERSION_MISMATCH;
    *info = (struct fabric_info_v){.version = version, .clique = node.clique, .state = node.has_fabric ? FABRIC_COMPLETED : 0};
    memcpy(info->cluster, node.cluster, sizeof info->cluster);
    return SUCCESS;
}
