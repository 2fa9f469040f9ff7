"""A cluster from its start to its end, and how a test gets at it."""

from __future__ import annotations

import dataclasses
import shutil
import signal
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

from support.images import workloads
from support.real_cluster import access
from support.real_cluster.access import API_PORT, Access
from support.real_cluster.control_plane import API_SERVER, SCHEDULER, ControlPlane
from support.real_cluster.daemons import Daemons
from support.real_cluster.kubectl import Kubectl, until
from support.real_cluster.namespaces import Namespaces
from support.real_cluster.node import KUBELET, Node
from support.real_cluster.programs import Programs

_RELAY: Final = Path(__file__).with_name("relay.py")


class RealCluster:
    """A control plane, and a node when it is asked for. Everything of it ends with `remove`."""

    def __init__(self, state: Path, programs: Programs, *, node: str = "gpu01") -> None:
        """`state`: a new folder with a short path, whose name no other cluster of the machine has."""
        self.state = state
        self.access = Access(state / "access", node)
        self.control_plane = ControlPlane(programs=programs, access=self.access, state=state)
        self.node = Node(name=node, programs=programs, access=self.access, state=state)
        self.daemons = Daemons(state / "logs")
        self.mounts: dict[str, Path] = {}
        """Folders of this machine by the place where the node has them, from its next start on."""
        self.devices: dict[str, tuple[int, int]] = {}
        """Device nodes by their place, with their numbers; likewise."""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._started: Namespaces | None = None
        self._relay: subprocess.Popen[bytes] | None = None
        self._prepare()

    def _prepare(self) -> None:
        self.daemons.logs.mkdir()
        self.access.write()
        workloads.compile_pause(self.state / "pause")
        for user in (access.ADMIN, access.NOBODY):
            self.kubeconfig(user).write_text(yaml.safe_dump(self.access.kubeconfig(user, self.port)))

    # How to get at it.

    @property
    def port(self) -> int:
        """Of the API server, on this machine."""
        port: int = self._socket.getsockname()[1]
        return port

    def kubeconfig(self, user: str = access.ADMIN) -> Path:
        """For whoever runs on this machine."""
        return self.access.file(f"{user}.yaml")

    def kubeconfig_in_network(self) -> Path:
        """For an administrator's program that runs where the API server is."""
        path = self.access.file("in-network.yaml")
        path.write_text(yaml.safe_dump(self.access.kubeconfig(access.ADMIN, API_PORT)))
        return path

    @property
    def logs(self) -> Path:
        """The folder of what all programs write."""
        return self.daemons.logs

    @property
    def kubectl(self) -> Kubectl:
        """The administrator's."""
        return Kubectl(self.kubeconfig())

    def on_node(self, path: str) -> Path:
        """What the node has below `/var/lib` or `/var/log`, as this machine sees it."""
        assert path.startswith(("/var/lib/", "/var/log/")), path
        return self.state / path.removeprefix("/var/")

    @property
    def _namespaces(self) -> Namespaces:
        assert self._started, "the cluster is not started"
        return self._started

    def run(self, *command: str | Path, text: str = "") -> str:
        """What a program prints that runs on the node, as root. Raises AssertionError where it fails."""
        line = self._namespaces.enter(*command)
        done = subprocess.run(line, input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr}{done.stdout}"
        return done.stdout

    def command_in_network(self, *command: str | Path) -> list[str]:
        """The command line of a program that pods and the API server reach, with the files of this machine."""
        return self._namespaces.enter_network(*command)

    def listen(self, port: int) -> socket.socket:
        """A socket that the API server and pods reach, for a server of this process."""
        return self._namespaces.listen(port)

    # What runs.

    def start(self) -> None:
        """The control plane: for the first time, or as `stop` left it."""
        self._started = Namespaces.create(self.state, self.state / "pause", self.daemons.logs / "namespaces.log")
        relay = self._namespaces.enter_network(sys.executable, _RELAY, str(self._socket.fileno()), str(API_PORT))
        self._furnish()
        self._relay = subprocess.Popen(relay, pass_fds=[self._socket.fileno()], stdin=subprocess.DEVNULL)
        self.daemons.start(self._namespaces, self.control_plane.etcd())
        self.start_api_server()
        for daemon in self.control_plane.others():
            self.daemons.start(self._namespaces, daemon)
        # Whoever makes pods, or looks at the namespace, takes both for granted.
        self._until("the namespace `default` has all", "get", "serviceaccount/default", "configmap/kube-root-ca.crt")

    def _furnish(self) -> None:
        for place, folder in self.mounts.items():
            self.run("mkdir", "-p", place)
            self.run("mount", "--bind", folder, place)
        for place, (major, minor) in self.devices.items():
            self.run("mknod", "-m", "666", place, "c", str(major), str(minor))

    def start_api_server(self) -> None:
        """Starts it, and waits until it is ready."""
        self.daemons.start(self._namespaces, self.control_plane.api_server())
        self._until("the API server", "get", "--raw", "/readyz")

    def stop_api_server(self) -> None:
        """Ends it at once; everything else goes on."""
        self.daemons.stop(API_SERVER, signal.SIGKILL)

    def start_node(self, **kubelet_settings: Any) -> None:
        """The node, with fields of its KubeletConfiguration that differ; waits until it is ready."""
        self.node = dataclasses.replace(self.node, kubelet_settings=kubelet_settings)
        self.node.configure()
        self.daemons.start(self._namespaces, self.node.containerd())
        until("containerd", self._containerd_answers)
        archive = self.state / "pause.tar"
        workloads.write_pause(archive)
        self.import_image(archive)
        begin = datetime.now(UTC)
        for daemon in self.node.others():
            self.daemons.start(self._namespaces, daemon)
        until("the node is ready", lambda: self._is_ready_since(begin))

    def restart_kubelet(self) -> None:
        """As `systemctl restart kubelet` does: pods run on."""
        self.daemons.stop(KUBELET)
        self.daemons.start(self._namespaces, self.node.kubelet())

    def restart_scheduler(self, config: Path | None) -> None:
        """With a KubeSchedulerConfiguration, or without one again."""
        self.control_plane = dataclasses.replace(self.control_plane, scheduler_config=config)
        self.daemons.stop(SCHEDULER)
        self.daemons.start(self._namespaces, self.control_plane.scheduler())

    def import_image(self, archive: Path) -> None:
        """Gives the node an image."""
        self.run(*self.node.ctr("images", "import", archive))

    def stop(self) -> None:
        """As when the machine loses its power: everything ends at once, what is on the disk stays."""
        if self._relay is not None:
            self._relay.kill()
            self._relay.wait()
        if self._started is not None:
            self._started.end()
        self.daemons.see_off()
        self._relay = self._started = None
        self.node.remove_cgroups()

    def remove(self) -> None:
        """Stops it, and takes away what it has left."""
        self.stop()
        self._socket.close()
        shutil.rmtree(self.state)

    def _until(self, what: str, *args: str) -> None:
        def holds() -> bool:
            self.daemons.check()
            return self.kubectl.answers(*args)

        until(what, holds)

    def _containerd_answers(self) -> bool:
        self.daemons.check()
        return bool(self.run(*self.node.ctr("version")))

    def _is_ready_since(self, begin: datetime) -> bool:
        # What an earlier kubelet said may still stand there.
        self.daemons.check()
        conditions = self.kubectl.get("node", self.node.name)["status"].get("conditions", ())
        return any(
            each["type"] == "Ready" and each["status"] == "True"
            and datetime.fromisoformat(each["lastHeartbeatTime"]) >= begin.replace(microsecond=0)
            for each in conditions
        )  # fmt: skip
