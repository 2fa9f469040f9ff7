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
    flag("mig-strategy", "MIG_STRATEGY", group="flags", read=choice(MigStrategy)),
    flag("fail-on-init-error", "FAIL_ON_INIT_ERROR", group="flags", read=switch),
    flag("driver-root", "NVIDIA_DRIVER_ROOT", alias="nvidia-driver-root", group="flags", key="nvidia_driver_root"),
    flag("dev-root", "NVIDIA_DEV_ROOT", alias="nvidia-dev-root", group="flags", key="nvidia_dev_root"),
    flag("pass-device-specs", "PASS_DEVICE_SPECS", group="plugin", read=switch),
    flag("device-list-strategy", "DEVICE_LIST_STRATEGY", group="plugin", read=choices(ListStrategy)),
    flag("device-id-strategy", "DEVICE_ID_STRATEGY", group="plugin", read=choice(IdStrategy)),
    flag("gdrcopy-enabled", "GDRCOPY_ENABLED", group="flags", read=switch),
    flag("gds-enabled", "GDS_ENABLED", group="flags", read=switch),
    flag("mofed-enabled", "MOFED_ENABLED", group="flags", read=switch),
    flag("cdi-annotation-prefix", "CDI_ANNOTATION_PREFIX", group="plugin"),
    flag(
        "nvidia-cdi-hook-path",
        "NVIDIA_CDI_HOOK_PATH",
        "NVIDIA_CTK_PATH",
        alias="nvidia-ctk-path",
        group="plugin",
        key="nvidia_ctk_path",
    ),
    flag(
        "driver-root-ctr-path",
        "DRIVER_ROOT_CTR_PATH",
        "CONTAINER_DRIVER_ROOT",
        alias="container-driver-root",
        group="plugin",
        key="container_driver_root",
    ),
    flag("mps-root", "MPS_ROOT", group="flags"),
    flag(
        "shared-devices-allocation-policy",
        "SHARED_DEVICES_ALLOCATION_POLICY",
        group="plugin",
        read=choice(Allocation),
    ),
    flag("device-discovery-strategy", "DEVICE_DISCOVERY_STRATEGY", group="flags", read=discovery),
    flag("imex-channel-ids", "IMEX_CHANNEL_IDS", read=_channels),
    flag("imex-required", "IMEX_REQUIRED", read=switch),
    flag("kubelet-socket", "KUBELET_SOCKET"),
    flag("config-file", "CONFIG_FILE"),
    flag("cdi-feature-flags", "CDI_FEATURE_FLAGS", read=words),
    flag("cdi-disable-hooks", "CDI_DISABLE_HOOKS", read=words),
    # Ours.
    flag("node-name", names.ENV_NODE_NAME),
    flag("kubeconfig", "KUBECONFIG"),
    flag("metrics-port", names.ENV_METRICS_PORT, read=port),
    flag("metrics-address", names.ENV_POD_IP),
)
