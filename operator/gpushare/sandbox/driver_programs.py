"""Stand-ins for the driver's programs that MPS needs, which NVIDIA's container runtime puts into containers of GPUs.

Written into the root of each container that runs one of our programs there. They talk through files: a daemon is a file in
the directory of its pipe, which the agent's container and the daemon's both see.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

_SMI: Final = """#!/bin/sh
exit 0
"""
_CONTROL: Final = """#!/bin/sh
daemon="$CUDA_MPS_PIPE_DIRECTORY/simulated"
if [ "$1" = -d ]; then
    echo 100 > "$daemon"
    exit
fi
if [ ! -e "$daemon" ]; then
    echo "Cannot find MPS control daemon process"
    exit 1
fi
read -r command value
case "$command" in
set_default_active_thread_percentage) echo "$value" > "$daemon" ;;
get_default_active_thread_percentage) read -r value < "$daemon"; echo "$value.0" ;;
quit) rm "$daemon" ;;
esac
"""
_PROGRAMS: Final = {"nvidia-smi": _SMI, "nvidia-cuda-mps-control": _CONTROL}


def install(root: Path) -> None:
    """Writes them below a container's root, where `PATH` leads by default."""
    folder = root / "usr/bin"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in _PROGRAMS.items():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
