"""Where the files that are not code lie: templates, CRDs and examples. Used by `render`, the sandbox and the command line."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent


def path_of(name: str) -> Path:
    """The folder `templates`, `crds` or `examples`: inside an installed wheel, or at the top of a source checkout.

    Raises:
        FileNotFoundError: the installation is broken.
    """
    for candidate in (_PACKAGE / "_data" / name, _PACKAGE.parents[1] / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"no folder {name!r} next to {_PACKAGE}: install gpu-sharing-operator again")
