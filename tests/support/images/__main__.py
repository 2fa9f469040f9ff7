"""`make image-archive OUT=FILE`: writes this project's image as an OCI archive, without docker."""

from __future__ import annotations

import sys
from pathlib import Path

from support.images import operator

operator.write_archive(Path(sys.argv[1]))
