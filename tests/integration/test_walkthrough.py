"""The walk-through, typed into real kubectl, and the life of the command around it."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import commands


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """For TMPDIR: the sandbox passes over folders with long names, as pytest's are."""
    folder = Path("/tmp", secrets.token_hex(3))
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("words", [("--tour",), ("--tour", "fractions")], ids=["sharing", "fractions"])
def test_tour(words: tuple[str, ...]) -> None:
    """Every step goes as it should, and says so."""
    done = commands.run("sandbox", *words)

    assert done.returncode == 0, done.stdout[-3000:]
    assert done.stdout.rstrip().endswith("steps went as they should.")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_end(tmp_path: Path, short_folder: Path, number: signal.Signals) -> None:
    """Ctrl-C and SIGTERM end it with 0, and it leaves nothing behind."""
    kubeconfig = tmp_path / "kubeconfig"

    with commands.sandbox(kubeconfig, TMPDIR=str(short_folder)) as process:
        assert kubeconfig.stat().st_mode & 0o077 == 0
        process.send_signal(number)

        assert process.wait(commands.PATIENCE) == 0

    assert list(short_folder.iterdir()) == []
    assert not kubeconfig.exists()


def test_end_before_ready(short_folder: Path) -> None:
    """Who changes his mind while it starts gets the same clean end."""
    with subprocess.Popen(
        [*commands.GPUSHARE, "sandbox", "--nodes", "50"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={"PATH": "/usr/bin:/bin", "TMPDIR": str(short_folder)},
    ) as process:  # fmt: skip
        try:
            # A folder: whoever looks for the place of temporary files first tries it with a file.
            while not any(path.is_dir() for path in short_folder.iterdir()):
                assert process.poll() is None
                time.sleep(0.01)  # a busy loop would take the core from what it waits for

            process.send_signal(signal.SIGTERM)

            _, errors = process.communicate(timeout=commands.PATIENCE)
        finally:
            process.kill()
    assert process.returncode == 0, errors.decode()
    assert list(short_folder.iterdir()) == []


def test_reader_that_has_gone(short_folder: Path) -> None:
    """`| head -1` ends it without a word, and cleanly."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*commands.GPUSHARE, "sandbox"], stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin", "TMPDIR": str(short_folder)}, check=False, timeout=commands.PATIENCE,
        )  # fmt: skip
    finally:
        os.close(writing)

    assert done.returncode == 1
    assert not re.search(b"Traceback|Error|pipe", done.stderr), done.stderr  # that it still waits may stand there
    assert list(short_folder.iterdir()) == []


_SCENARIOS = {
    "model": "nodes:\n- name: gpu01\n  gpus: [{model: Tesla T5}]\n",
    "key": "nodes:\n- name: gpu01\n  colour: green\n",
}


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        pytest.param(("sandbox", "--nodes", "many"), 2, "--nodes", id="a number that is none"),
        pytest.param(("sandbox", "--nodes", "3", "--scenario", "x.yaml"), 2, "give one of them", id="two wills"),
        pytest.param(("sandbox", "--tour", "moon"), 2, "'moon' is not one of", id="no such tour"),
        pytest.param(("sandbox", "--stay"), 2, "--stay goes with --tour", id="stay without a tour"),
        pytest.param(("sandbox", "--write-kubeconfig", "/nowhere/x"), 2, "no folder /nowhere", id="no such folder"),
        pytest.param(("sandbox", "--scenario", "{model}"), 1, "Tesla T5", id="no such model"),
        pytest.param(
            ("sandbox", "--scenario", "{key}"), 1, "nodes[0].colour (line 3): unknown key", id="line and path"
        ),
        pytest.param(("sandbox", "--scenario", "/nowhere.yaml"), 1, "/nowhere.yaml", id="no such file"),
        pytest.param(("sandbox", "--kubeconfig", "/nowhere"), 1, "/nowhere", id="no such kubeconfig"),
        pytest.param(("sandboxes",), 2, "sandbox", id="no such command"),
        pytest.param(("sandbox", "--port", "{port}"), 1, "port {port} is taken; name", id="a port that is taken"),
        pytest.param(("agent", "--no-such-flag"), 2, "no-such-flag", id="no such flag of the agent"),
        pytest.param(("controller", "--no-such-flag"), 2, "no-such-flag", id="no such flag of the controller"),
        pytest.param(("--help",), 0, "controller", id="help"),
        pytest.param((), 0, "sandbox", id="nothing"),
    ],
)
def test_usage(tmp_path: Path, args: tuple[str, ...], code: int, says: str) -> None:
    """Wrong usage ends with 2, what cannot be done with 1, each with a text that names the place."""
    values: dict[str, object] = {name: tmp_path / f"{name}.yaml" for name in _SCENARIOS}
    for name, text in _SCENARIOS.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        values["port"] = taken.getsockname()[1]
        done = commands.run(*(arg.format(**values) for arg in args))

    assert done.returncode == code
    assert says.format(**values) in done.stdout
    assert "Traceback" not in done.stdout
