"""Where a virtual GPU says that it is one."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gpushare.labels import VirtualGpu
from gpushare.labels.vgpu import find_virtual_gpu

HEADER = b"\xde\x10" + bytes(0x32)


def space(*capabilities: bytes) -> bytes:
    """A configuration space with capabilities one after another; each gets its pointer to the next."""
    start, body = 0x40, b""
    for position, capability in enumerate(capabilities):
        end = start + len(body) + len(capability)
        following = end if position + 1 < len(capabilities) else 0
        body += capability[:1] + bytes([following]) + capability[2:]
    head = HEADER + bytes([start if capabilities else 0])
    return head.ljust(start, b"\0") + body


def vendor(signature: bytes, *records: bytes) -> bytes:
    """A vendor-specific capability."""
    body = b"\x01" + signature[:1] + signature[1:] + b"".join(records)
    content = body[1:]
    return b"\x09\x00" + bytes([3 + len(content)]) + content


DRIVER = b"\x00\x16" + b"460.16".ljust(10, b"\0") + b"r460_00".ljust(10, b"\0")
OTHER = b"\x07\x04ab"
POWER = b"\x01\x00" + bytes(6)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param(
            space(vendor(b"VF", DRIVER)),
            VirtualGpu(host_driver_version="460.16", host_driver_branch="r460_00"),
            id="vGPU",
        ),
        pytest.param(
            space(POWER, vendor(b"VF", OTHER, DRIVER)),
            VirtualGpu(host_driver_version="460.16", host_driver_branch="r460_00"),
            id="after other records",
        ),
        pytest.param(space(vendor(b"VF", OTHER)) + DRIVER, VirtualGpu(), id="what follows is none of it"),
        pytest.param(space(vendor(b"XX", DRIVER)), None, id="another vendor capability"),
        pytest.param(space(POWER), None, id="passed through"),
        pytest.param(space(), None, id="no capabilities"),
        pytest.param(b"", None, id="empty"),
        pytest.param(space(vendor(b"VF", b"\x07\x00")), VirtualGpu(), id="a record of no length"),
    ],
)
def test_find(config: bytes, expected: VirtualGpu | None) -> None:
    """Signature, then records until that of the driver."""
    assert find_virtual_gpu(config) == expected


@given(st.binary(max_size=300))
def test_any_bytes(config: bytes) -> None:
    """Broken hardware ends no agent."""
    find_virtual_gpu(config)
