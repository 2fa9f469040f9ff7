"""Which cluster a command speaks to."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from gpushare.cli import commands, pictures
from gpushare.cli.clusters import read_credentials
from gpushare.errors import UsageError

KUBECONFIG = """\
current-context: c
contexts: [{name: c, context: {cluster: %(name)s}}]
clusters: [{name: %(name)s, cluster: {server: "https://%(name)s"}}]
"""


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, path in (("home", ".kube/config"), ("other", "other")):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(KUBECONFIG % {"name": name})
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("listed", "server"),
    [
        pytest.param((), "https://home", id="none is named"),
        pytest.param(("other",), "https://other", id="one"),
        pytest.param(("gone", "other"), "https://other", id="the first that is there"),
    ],
)
def test_cluster(listed: tuple[str, ...], server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As kubectl finds it."""
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(str(tmp_path / name) for name in listed))

    assert read_credentials(None).server == server


def test_file_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever names a file means its cluster, and never hears of another one."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "gone"))

    with pytest.raises(UsageError, match=r"\$KUBECONFIG names .*/gone, which is not there"):
        read_credentials(None)


def test_no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has none yet is told what to name."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))

    with pytest.raises(UsageError, match=r"no cluster is named: there is no .*/nobody/\.kube/config; set \$KUBECONFIG"):
        read_credentials(None)


def test_file_that_is_no_text(tmp_path: Path) -> None:
    """Said in words, not in those of a codec."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe")

    with pytest.raises(UsageError, match=r"binary: is no text"):
        read_credentials(tmp_path / "binary")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param((), "no pod team/a", id="that of the context"),
        pytest.param(("-n", "other"), "no pod other/a", id="another one"),
    ],
)
def test_namespace(words: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin of kubectl looks for a pod where kubectl would."""
    file, stderr = tmp_path / "kubeconfig", io.StringIO()
    file.write_text((KUBECONFIG % {"name": "x"}).replace("cluster: x}", "cluster: x, namespace: team}"))
    monkeypatch.setattr(pictures, "read_picture", lambda *_: pictures.Picture(()))

    assert commands.run(("explain", "a", "--kubeconfig", str(file), *words), stderr=stderr) == 2
    assert says in stderr.getvalue()
