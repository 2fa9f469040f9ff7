"""The examples of the allocation library, run as a person runs them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str) -> list[str]:
    done = subprocess.run([sys.executable, str(EXAMPLES / name)], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_allocator() -> None:
    """Details of eight GPUs, and allocations of one, two, four and eight."""
    lines = run("05-allocator.py")

    assert [line.partition(",")[0] for line in lines[:8]] == [f"GPU {n}: Tesla V100-SXM2-32GB" for n in range(8)]
    for expected in (
        "1 GPUs: [0], score 0",
        "2 GPUs: [0, 3], score 230",
        "4 GPUs: [0, 1, 2, 3], score 1120",
        "8 GPUs: [0, 1, 2, 3, 4, 5, 6, 7], score 3000",
        "with GPU 0 and 3 given out, 2 GPUs: [1, 2]",
        "8 GPUs: 8 wanted, but only 4 free: GPU 4, 5, 6, 7",
    ):
        assert expected in lines


def test_own_policy() -> None:
    """GPUs that are far from each other, for once."""
    assert run("05-own-policy.py") == ["[0, 5]", "[1, 4]", "[2, 7]", "[3, 6]"]
