"""Share ids as text, and pools of them."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from gpushare.domain.pools import Pool, Share
from gpushare.domain.shares import SEPARATOR, UNIT_SEPARATOR, ShareId, device_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("GPU-1", ShareId("GPU-1"), id="whole device"),
        pytest.param("GPU-1::0", ShareId("GPU-1", 0), id="first share"),
        pytest.param("GPU-1-_-3", ShareId("GPU-1", 3, UNIT_SEPARATOR), id="unit of memory"),
        pytest.param("MIG-7::12", ShareId("MIG-7", 12), id="share of a MIG instance"),
    ],
)
def test_parse(text: str, expected: ShareId) -> None:
    """What the kubelet sends becomes what was meant."""
    assert expected == ShareId.parse(text)


@pytest.mark.parametrize("text", ["GPU-1::", "GPU-1::x", "GPU-1::1::2", "GPU-1::-1", "GPU-1::²", "GPU-1-_-x"])
def test_parse_refuses(text: str) -> None:
    """A suffix that is no number is an error, never share 0."""
    with pytest.raises(ValueError, match="expected a number"):
        ShareId.parse(text)


DEVICES = st.from_regex(r"(GPU|MIG)-[0-9a-f]{8}", fullmatch=True)


@given(
    st.builds(ShareId, DEVICES)
    | st.builds(ShareId, DEVICES, st.integers(0, 999), st.sampled_from((SEPARATOR, UNIT_SEPARATOR)))
)
def test_text_and_back(share: ShareId) -> None:
    """Nothing is lost on the way through the kubelet."""
    assert share == ShareId.parse(str(share))
    assert device_of(str(share)) == share.device


def test_a_pool_knows_its_shares_by_id() -> None:
    """The ids of the kubelet lead to shares; pools that offer the same are equal."""
    shares = (
        Share(id=ShareId("a", 0), gpu_index=0),
        Share(id=ShareId("a", 1), gpu_index=0, mig_index=3, healthy=False),
    )
    pool = Pool(resource="nvidia.com/gpu.shared", base="nvidia.com/gpu", replicas=2, shares=shares)

    assert dict(pool.by_id) == {"a::0": shares[0], "a::1": shares[1]}
    assert (pool.renamed, pool.healthy) == (True, 1)
    assert [share.device_index for share in shares] == ["0", "0:3"]
    assert pool == Pool(resource="nvidia.com/gpu.shared", base="nvidia.com/gpu", replicas=2, shares=shares)
    assert hash(pool)
