"""What `gpushare` alone says, and what it says to a word that it does not know."""

from __future__ import annotations

import importlib
import io
import os
import subprocess
import sys

import click
import pytest

from gpushare.cli import commands
from gpushare.cli.main import PROCESSES


def test_everything_that_can_be_run_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Commands of people and processes of nodes alike."""
    assert commands.run(["--help"], stderr=io.StringIO()) == 0

    words = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert commands.COMMANDS.keys() | PROCESSES.keys() <= set(words)


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_a_command_says_the_same_of_itself(name: str) -> None:
    """The list does not load the commands, so it has their summaries a second time."""
    module, summary = commands.COMMANDS[name]
    command = importlib.import_module(module).command

    assert isinstance(command, click.Command)
    assert command.short_help == summary


def test_unknown_word() -> None:
    """Wrong usage, and where to look."""
    stderr = io.StringIO()

    assert commands.run(["nonsense"], stderr=stderr) == 2
    assert "gpushare --help" in stderr.getvalue()


@pytest.mark.parametrize("words", [["--help"], ["agent", "--help"], ["crds", "--help"]], ids=" ".join)
def test_reader_that_has_gone(words: list[str]) -> None:
    """`| head -1` ends it without a word about its insides."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "gpushare", *words], stdout=writing, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(writing)

    assert (done.returncode, done.stderr) == (1, b"")


def test_sandbox_without_its_extra() -> None:
    """Images and nodes do not have it; whoever misses it is told what it is called."""
    code = "import sys; sys.modules['cel_expr_python'] = None; from gpushare.cli import main; sys.exit(main.run(['sandbox']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stderr.startswith("Error: the sandbox needs cel_expr_python: install this package with its extra")
