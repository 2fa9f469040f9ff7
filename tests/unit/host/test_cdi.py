"""CDI specifications on disk."""

from __future__ import annotations

import json
from pathlib import Path

from gpushare.host.cdi import FOLDER, CdiFolder, path_of
from gpushare.host.files import HostFiles

GPU = "/var/run/cdi/k8s.device-plugin.nvidia.com-gpu.json"
ONE = {"kind": "k", "devices": [{"name": "0", "containerEdits": {"env": ["A=1"]}}], "containerEdits": {}}
TWO = {**ONE, "devices": [*ONE["devices"], {"name": "1", "containerEdits": {}}]}


def folder_of(tmp_path: Path) -> tuple[CdiFolder, Path]:
    return CdiFolder(HostFiles(tmp_path)), tmp_path / FOLDER.lstrip("/")


def test_names() -> None:
    """Those of NVIDIA's device plugin, which a new agent so takes over."""
    assert path_of("gpu") == GPU


def test_write_and_remove(tmp_path: Path) -> None:
    """One file a class, readable for all, those of others left alone; written again only when it differs."""
    folder, place = folder_of(tmp_path)
    assert folder.holds({})
    assert folder.apply({"gpu": ONE, "gds": ONE}) == ()
    (place / "nvidia.com-gpu.yaml").write_text("another's")
    (place / "k8s.device-plugin.nvidia.com-other.json").write_text("{}")

    first = (tmp_path / GPU.lstrip("/")).stat()
    assert json.loads((tmp_path / GPU.lstrip("/")).read_text()) == ONE
    assert first.st_mode & 0o777 == 0o644
    assert folder.holds({"gpu": ONE, "gds": ONE})
    assert not folder.holds({"gpu": ONE})

    assert folder.apply({"gpu": ONE}) == ()
    assert (tmp_path / GPU.lstrip("/")).stat().st_ino == first.st_ino
    assert sorted(path.name for path in place.iterdir()) == [
        "k8s.device-plugin.nvidia.com-gpu.json",
        "k8s.device-plugin.nvidia.com-other.json",
        "nvidia.com-gpu.yaml",
    ]

    assert folder.apply({"gpu": TWO}) == ()
    assert folder.holds({"gpu": TWO})


def test_what_cannot_be_written(tmp_path: Path) -> None:
    """Each file by itself, with its place and the system's reason; the others are written."""
    folder, _ = folder_of(tmp_path)
    blocked = tmp_path / path_of("gds").lstrip("/")
    (blocked / "in the way").mkdir(parents=True)

    problems = folder.apply({"gpu": ONE, "gds": ONE})

    assert [str(problem) for problem in problems] == [f"{path_of('gds')}: cannot be written: Is a directory"]
    assert folder.described("gpu", ONE) == {"0"}
    assert [str(problem) for problem in folder.apply({})] == [f"{path_of('gds')}: cannot be removed: Is a directory"]
    assert folder.described("gpu", ONE) == frozenset()


def test_described(tmp_path: Path) -> None:
    """Devices that stand there as they should; none, where what all of them get is different."""
    folder, place = folder_of(tmp_path)
    folder.apply({"gpu": ONE})

    assert folder.described("gpu", TWO) == {"0"}
    assert folder.described("gpu", {**TWO, "containerEdits": {"env": ["B=2"]}}) == frozenset()

    for text in ("no JSON", "[]", ""):
        (place / "k8s.device-plugin.nvidia.com-gpu.json").write_text(text)
        assert folder.described("gpu", ONE) == frozenset()
