"""Which devices an entry's `devices:` means on one node. Used by `building`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpushare.api.sharing import SharedResource
from gpushare.domain.devices import Inventory
from gpushare.domain.pools import Share
from gpushare.errors import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The devices of one entry."""

    shares: tuple[Share, ...] = ()
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


def select(entry: SharedResource, devices: Sequence[Share] | None, inventory: Inventory) -> Selection:
    """Devices that the entry shares, in the order of the node; `devices` None or empty: the node lacks the resource.

    A UUID of another node is a warning, since one text may list the GPUs of many; an index past the end is a problem.
    """
    if not devices:
        message = f"this node has no {entry.name}; the entry has no effect here"
        return Selection(warnings=(Problem(path=f"{entry.path}.name", message=message),))
    if entry.devices.is_all:
        return Selection(shares=tuple(devices))
    path = f"{entry.path}.devices"
    if entry.devices.count is not None:
        if entry.devices.count > len(devices):
            message = f"asks for {entry.devices.count} devices, but this node has {len(devices)} of {entry.name}"
            return Selection(problems=(Problem(path=path, message=message),))
        return Selection(shares=tuple(devices[: entry.devices.count]))
    return _by_refs(entry, devices, inventory, path)


def _by_refs(entry: SharedResource, devices: Sequence[Share], inventory: Inventory, path: str) -> Selection:
    known = {name: device for device in devices for name in _names_of(device, inventory)}
    problems: list[Problem] = []
    warnings: list[Problem] = []
    found = set()
    for position, ref in enumerate(entry.devices.refs):
        place = f"{path}[{position}]"
        if ref in known:
            found.add(known[ref].id)
        elif ref.startswith(("GPU-", "MIG-")):
            warnings.append(Problem(path=place, message=f"this node has no {ref} among its {entry.name}"))
        else:
            indices = ", ".join(device.device_index for device in devices)
            message = f"this node has no {entry.name} with index {ref}; it has {indices}"
            problems.append(Problem(path=place, message=message))
    shares = tuple(device for device in devices if device.id in found)
    return Selection(shares=shares, problems=tuple(problems), warnings=tuple(warnings))


def _names_of(device: Share, inventory: Inventory) -> tuple[str, ...]:
    if device.mig_index is None:
        return device.id.device, device.device_index
    gpu = next(gpu for gpu in inventory.gpus if gpu.index == device.gpu_index)
    mig = next(mig for mig in gpu.mig if mig.index == device.mig_index)
    # The third form is what drivers before 470 call an instance; people still write it.
    legacy = f"MIG-{gpu.uuid}/{mig.gpu_instance}/{mig.compute_instance}"
    return device.id.device, device.device_index, legacy
