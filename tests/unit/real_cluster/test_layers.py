"""Layers of images that are kept in the cache."""

from __future__ import annotations

import os
from pathlib import Path

from support.images import operator


def test_old_ones_go(tmp_path: Path) -> None:
    """Those that were used last stay, whenever they were packed, and nothing else is touched."""
    for used, name in enumerate(("image-d", "image-b", "kubernetes-1.36.3", "image-e", "image-a", "image-c")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "python.tar").touch()
        os.utime(folder, (used, used))

    operator.forget_layers(tmp_path)

    assert {each.name for each in tmp_path.iterdir()} == {"image-e", "image-a", "image-c", "kubernetes-1.36.3"}
