"""What a change would make of a cluster, as people read it."""

from __future__ import annotations

from dataclasses import replace

from gpushare.domain.gpunode import Config, ConfigReason, ConfigSource
from gpushare.plan.preview import NodePreview, Overuse, Preview
from gpushare.views import preview as views

ALL = Config(
    reason=ConfigReason.DEFAULT, source=ConfigSource(namespace="ops", name="sharing", key="all"), content="version: v1"
)
NODES = (
    NodePreview(
        name="gpu01",
        before=Config(),
        after=ALL,
        resources_before={"nvidia.com/gpu": 4, "nvidia.com/few": 2},
        resources_after={"nvidia.com/gpu": 16, "nvidia.com/few": 0},
        labels={"nvidia.com/gpu.replicas": ("1", "4"), "gone": ("", None)},
        overuse=(Overuse(resource="nvidia.com/few", in_use=12, total=0, pods=tuple(f"n/p{i:02}" for i in range(12))),),
    ),
    NodePreview(name="gpu02", before=ALL, after=replace(ALL, content="version: v1 "), warnings=("odd",)),
    NodePreview(name="gpu03", before=ALL, after=replace(ALL, mig_strategy="mixed")),
    NodePreview(name="gpu04", before=ALL, after=ALL, refusals=('gpu04 keeps "all": broken', "wrong")),
    NodePreview(name="gpu05", before=ALL),
)
TEXT = """\
policy: p

NODE   CONFIGURATION                                             RESOURCE        BEFORE  AFTER
gpu01  none -> all (default)                                     nvidia.com/few  2       0
                                                                 nvidia.com/gpu  4       16
gpu02  all (default) 793111870e8d -> all (default) e079321ea91f  -               -       -
gpu03  all (default), MIG strategy - -> mixed                    -               -       -
gpu04  all (default)                                             -               -       -
gpu05  all (default) -> -                                        -               -       -

gpu01: over the limit: 12 of nvidia.com/few are in use, by n/p00, n/p01, n/p02, n/p03, n/p04, n/p05, n/p06, n/p07, n/p08, \
n/p09 and 2 more, and 0 would be offered; running pods stay, new ones wait
gpu01: label nvidia.com/gpu.replicas: 1 -> 4
gpu01: label gone: "" -> (none)
gpu02: warning: odd
gpu04: refused: keeps "all": broken
gpu04: refused: wrong
warning: two policies"""


def test_text() -> None:
    """The table, then each note behind its node."""
    assert views.build_text(Preview(policy="p", nodes=NODES, warnings=("two policies",))) == TEXT


def test_nobody() -> None:
    """A cluster without GPUs."""
    assert views.build_text(Preview(refusals=("no",))) == (
        "policy: none\n\nno node has GPUs that are served, before or after\n\nrefused: no"
    )


def test_document() -> None:
    """The same for programs, without the texts of configurations."""
    body = views.build_document(Preview(policy="p", nodes=NODES))
    first = body["nodes"][0]

    assert body["refused"]
    assert first["configuration"]["after"]["source"] == {"namespace": "ops", "name": "sharing", "key": "all"}
    assert "content" not in first["configuration"]["after"]
    assert first["labels"]["gone"] == {"before": "", "after": None}
    assert first["overLimit"][0]["pods"][0] == "n/p00"
