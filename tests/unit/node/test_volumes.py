"""Files below a node's root, and containers' views of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpushare.sandbox.node import access, volumes
from gpushare.sandbox.node.volumes import HostFolders, MountFailed


@pytest.fixture
def folders(tmp_path: Path) -> HostFolders:
    return HostFolders(tmp_path / "n")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("Directory", "hostPath type check failed: /there is not a directory"),
        ("File", "hostPath type check failed: /there is not a file"),
        ("Socket", "hostPath type check failed: /there is not a socket file"),
        ("CharDevice", "hostPath type check failed: /there is not a character device"),
    ],
)
def test_host_path_that_must_exist(folders: HostFolders, kind: str, message: str) -> None:
    """A path that is not what the pod demands is the kubelet's FailedMount."""
    with pytest.raises(MountFailed) as failed:
        volumes.mount_host_path(folders, "v", {"path": "/there", "type": kind})
    assert str(failed.value) == f'MountVolume.SetUp failed for volume "v" : {message}'


@pytest.mark.parametrize("kind", ["", "DirectoryOrCreate", "FileOrCreate"])
def test_host_path_that_is_made(folders: HostFolders, kind: str) -> None:
    """What may be missing is made; a second time it is found."""
    source = {"path": "/var/lib/gpushare/x", "type": kind}
    path = volumes.mount_host_path(folders, "v", source)

    assert path == folders.root / "var/lib/gpushare/x"
    assert path.is_file() if kind == "FileOrCreate" else path.is_dir()
    assert volumes.mount_host_path(folders, "v", source) == path


def test_files_follow_their_source(tmp_path: Path) -> None:
    """A key that is gone takes its file with it; what stays is replaced as a whole."""
    volumes.write_files(tmp_path, {"a": b"1", "sub/b": b"2"})
    volumes.write_files(tmp_path, {"a": b"3"})

    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"3"


def test_root(tmp_path: Path) -> None:
    """A container sees what is mounted, and nothing else of its node."""
    host, config, root = tmp_path / "host", tmp_path / "config", tmp_path / "c"
    (host / "device-plugins").mkdir(parents=True)
    config.mkdir()
    (config / "key").write_text("value")
    volumes.build_root(root, [("/etc/app", config), ("/var/lib/kubelet/device-plugins", host / "device-plugins")])

    assert (root / "etc/app/key").read_text() == "value"
    (root / "var/lib/kubelet/device-plugins/x.sock").touch()
    assert (host / "device-plugins/x.sock").exists()
    assert sorted(path.name for path in root.iterdir()) == ["etc", "tmp", "var"]


def test_mount_below_a_mount(tmp_path: Path) -> None:
    """The inner one shows inside the outer one; where the outer shows the same already, nothing is done."""
    outer, inner = tmp_path / "outer", tmp_path / "inner"
    (outer / "same").mkdir(parents=True)
    inner.mkdir()
    root = tmp_path / "c"
    for _ in range(2):  # a restarted container finds the link of the one before
        volumes.build_root(root, [("/data/inner", inner), ("/data/same", outer / "same"), ("/data", outer)])
    assert (root / "data/inner").resolve() == inner.resolve()
    assert (root / "data/same").resolve() == (outer / "same").resolve()


def test_mount_over_something_else(tmp_path: Path) -> None:
    """What cannot be shown is refused rather than shown wrongly."""
    outer = tmp_path / "outer"
    (outer / "taken").mkdir(parents=True)
    with pytest.raises(MountFailed, match="/data/taken exists already"):
        volumes.build_root(tmp_path / "c", [("/data", outer), ("/data/taken", tmp_path)])


def test_roots_stay_short(tmp_path: Path) -> None:
    """A node whose sockets would not fit into the kernel's 107 bytes is refused at once."""
    with pytest.raises(ValueError, match="give the nodes a shorter folder"):
        HostFolders(tmp_path / ("x" * 40)).container_root(1)
    assert HostFolders(Path("/tmp/gs/1")).container_root(7) == Path("/tmp/gs/1/c/7")


def test_sub_paths(tmp_path: Path) -> None:
    """A part of a volume, made where it is missing."""
    container = {"volumeMounts": [{"name": "v", "mountPath": "/x", "subPath": "part/one"}]}
    assert list(volumes.mounts_of(container, {"v": tmp_path})) == [("/x", tmp_path / "part/one")]
    assert (tmp_path / "part/one").is_dir()


def test_every_pod_gets_api_access() -> None:
    """What the API server's admission did not add is added here, once, and only where it is wanted."""
    pod = {"metadata": {"namespace": "ns"}, "spec": {"containers": [{"name": "a"}], "initContainers": [{"name": "i"}]}}
    given = access.with_api_access(pod)

    assert pod["spec"]["containers"] == [{"name": "a"}], "the watch's object is not touched"
    for container in (*given["spec"]["containers"], *given["spec"]["initContainers"]):
        assert [mount["mountPath"] for mount in container["volumeMounts"]] == [access.PATH]
    assert access.with_api_access(given) is given
    refusing = {"spec": {"containers": [{"name": "a"}], "automountServiceAccountToken": False}}
    assert access.with_api_access(refusing) is refusing
