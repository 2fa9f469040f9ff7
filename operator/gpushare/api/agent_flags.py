"""The flags and variables of the agent: those of NVIDIA's device plugin, and ours.

Used by `agent` to read its own command line, and by `plan` to refuse in a policy what every agent would end on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gpushare import names
from gpushare.api.flags import choice, choices, discovery, flag, port, switch, words
from gpushare.api.sharing import IdStrategy, ListStrategy
from gpushare.domain.devices import MigStrategy
from gpushare.domain.pools import Allocation


def _channels(texts: Sequence[str]) -> tuple[int, ...]:
    found = words(texts)
    if found not in {(), ("0",)}:
        raise ValueError(f"{','.join(found)!r} is neither empty nor 0, the only channel that there is")
    return tuple(map(int, found))


FLAGS: Final = (
    flag(
        "config-file",
        "CONFIG_FILE",
        help="the sharing configuration, followed when it changes; default: what the cluster assigns to this node",
    ),
    flag(
        "mig-strategy",
        "MIG_STRATEGY",
        group="flags",
        read=choice(MigStrategy),
        help="how MIG devices are offered: none, single or mixed; default: as policy or configuration say, else none",
    ),
    flag(
        "device-list-strategy",
        "DEVICE_LIST_STRATEGY",
        group="plugin",
        read=choices(ListStrategy),
        help="how containers are told their devices: some of envvar, volume-mounts, cdi-annotations, cdi-cri; default envvar",
    ),
    flag(
        "device-id-strategy",
        "DEVICE_ID_STRATEGY",
        group="plugin",
        read=choice(IdStrategy),
        help="what devices are called towards containers: uuid or index; default uuid",
    ),
    flag(
        "pass-device-specs",
        "PASS_DEVICE_SPECS",
        group="plugin",
        read=switch,
        help="give containers the device nodes too, as kubelets with a static CPU manager need it; default false",
    ),
    flag(
        "shared-devices-allocation-policy",
        "SHARED_DEVICES_ALLOCATION_POLICY",
        group="plugin",
        read=choice(Allocation),
        help="which shares a request gets: distributed, packed or distinct; default distributed",
    ),
    flag(
        "fail-on-init-error",
        "FAIL_ON_INIT_ERROR",
        group="flags",
        read=switch,
        help="taken for the sake of NVIDIA's plugin; the agent never ends for want of a driver, it tries again",
    ),
    flag(
        "driver-root",
        "NVIDIA_DRIVER_ROOT",
        alias="nvidia-driver-root",
        group="flags",
        key="nvidia_driver_root",
        help="where the driver is installed on the host; default /",
    ),
    flag(
        "driver-root-ctr-path",
        "DRIVER_ROOT_CTR_PATH",
        "CONTAINER_DRIVER_ROOT",
        alias="container-driver-root",
        group="plugin",
        key="container_driver_root",
        help="where this container sees the driver's root; default /driver-root",
    ),
    flag(
        "dev-root",
        "NVIDIA_DEV_ROOT",
        alias="nvidia-dev-root",
        group="flags",
        key="nvidia_dev_root",
        help="where the device nodes are on the host; default: the driver's root",
    ),
    flag(
        "mps-root",
        "MPS_ROOT",
        group="flags",
        help="directory of the MPS daemons on the host, such as /run/nvidia/mps; needed where resources are shared by MPS",
    ),
    flag(
        "kubelet-socket",
        "KUBELET_SOCKET",
        help="where to register, on the host; empty: nowhere; default /var/lib/kubelet/device-plugins/kubelet.sock",
    ),
    flag(
        "gdrcopy-enabled", "GDRCOPY_ENABLED", group="flags", read=switch, help="GDRCopy for containers; default false"
    ),
    flag("gds-enabled", "GDS_ENABLED", group="flags", read=switch, help="GPUDirect Storage; default false"),
    flag("mofed-enabled", "MOFED_ENABLED", group="flags", read=switch, help="Mellanox OFED devices; default false"),
    flag(
        "imex-channel-ids",
        "IMEX_CHANNEL_IDS",
        read=_channels,
        help="IMEX channels for every container: 0, the only one that there is, or none; default none",
    ),
    flag(
        "imex-required",
        "IMEX_REQUIRED",
        read=switch,
        help="refuse a configuration whose IMEX channels this host does not have; default false",
    ),
    flag(
        "cdi-annotation-prefix",
        "CDI_ANNOTATION_PREFIX",
        group="plugin",
        help="begins the names of CDI annotations; default cdi.k8s.io/",
    ),
    flag(
        "nvidia-cdi-hook-path",
        "NVIDIA_CDI_HOOK_PATH",
        "NVIDIA_CTK_PATH",
        alias="nvidia-ctk-path",
        group="plugin",
        key="nvidia_ctk_path",
        help="the program that CDI hooks run, on the host; default /usr/bin/nvidia-ctk",
    ),
    flag("cdi-feature-flags", "CDI_FEATURE_FLAGS", read=words, help="features of CDI descriptions; default none"),
    flag("cdi-disable-hooks", "CDI_DISABLE_HOOKS", read=words, help="CDI hooks to leave out, or all; default none"),
    flag(
        "device-discovery-strategy",
        "DEVICE_DISCOVERY_STRATEGY",
        group="flags",
        read=discovery,
        help="how devices are found: auto or nvml; default auto",
    ),
    # Ours.
    flag(
        "hami-core-library",
        "HAMI_CORE_LIBRARY",
        help="HAMi's library on the host, where it isolates fractions; default /usr/local/vgpu/libvgpu.so",
    ),
    flag("node-name", names.ENV_NODE_NAME, help="the node in the cluster; needed where there is one"),
    flag("kubeconfig", "KUBECONFIG", help="for trying by hand; default: the pod's own account, or no cluster"),
    flag("metrics-port", names.ENV_METRICS_PORT, read=port, help="of metrics and health; 0: none; default 0"),
    flag("metrics-address", names.ENV_POD_IP, help="address to listen on; default: all of them"),
)
