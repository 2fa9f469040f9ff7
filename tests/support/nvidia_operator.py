"""What NVIDIA's operator does to objects and nodes, as far as others meet it: its DaemonSet, its labels, its passes."""

from __future__ import annotations

from typing import Any

from gpushare import names
from gpushare.domain import manifests
from gpushare.kube.cluster import Cluster, PatchType

PROGRAM = "gpu-operator/v26.7.0 (linux/amd64) kubernetes/$Format"
"""How it presents itself to API servers; the first word becomes the name of its field manager."""
DEPLOY = names.LABEL_DEPLOY_PREFIX
_COMPONENTS = (
    "driver", "gpu-feature-discovery", "container-toolkit", "device-plugin", "dcgm", "dcgm-exporter",
    "node-status-exporter", "operator-validator", "client",
)  # fmt: skip


def daemonset(namespace: str, policy: dict[str, Any]) -> dict[str, Any]:
    """Its device plugin, with a side-car and containers that come first, as it is where a policy names a ConfigMap."""
    app = {"app": names.DAEMONSET_DEVICE_PLUGIN}
    mounts = [{"name": "run-nvidia-validations", "mountPath": "/run/nvidia/validations"}]
    image = "nvcr.example/nvidia/k8s-device-plugin:v0.20.0"
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": names.DAEMONSET_DEVICE_PLUGIN,
            "namespace": namespace,
            "labels": {**app, "helm.sh/chart": "gpu-operator-v26.7.0"},
            "annotations": {"nvidia.com/last-applied-hash": "1234", "openshift.io/scc": "hostmount-anyuid"},
            "ownerReferences": [owner_of(policy)],
        },
        "spec": {
            "selector": {"matchLabels": app},
            "template": {
                "metadata": {"labels": {**app, "helm.sh/chart": "gpu-operator-v26.7.0"}},
                "spec": {
                    "serviceAccountName": names.SERVICE_ACCOUNT_DEVICE_PLUGIN,
                    "nodeSelector": {names.LABEL_DEPLOY_DEVICE_PLUGIN: "true"},
                    "shareProcessNamespace": True,
                    "initContainers": [{"name": "toolkit-validation", "image": image, "volumeMounts": mounts}],
                    "containers": [
                        {
                            "name": "nvidia-device-plugin",
                            "image": image,
                            "command": ["/bin/sh", "-c"],
                            "args": ["/bin/entrypoint.sh"],
                            "env": [{"name": "CONFIG_FILE", "value": "/config/config.yaml"}],
                        },
                        {"name": "config-manager", "image": image, "command": ["config-manager"]},
                    ],
                    "volumes": [{"name": "run-nvidia-validations", "hostPath": {"path": "/run/nvidia/validations"}}],
                },
            },
        },
    }


def owner_of(policy: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": policy["apiVersion"], "kind": policy["kind"], "name": policy["metadata"]["name"],
        "uid": policy["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip


class NvidiaOperator:
    """Its passes, one at a time. `cluster` must present itself as `PROGRAM`."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace

    async def label_nodes(self) -> int:
        """Labels all nodes; where discovery says nothing any more, all of it goes, whoever wrote it. Returns its writes."""
        writes = 0
        for node in (await self._cluster.list(manifests.NODE)).items:
            labels = node["metadata"].get("labels") or {}
            found = any(labels.get(key) == "true" for key in names.LABELS_NFD_GPU)
            changes: dict[str, str | None] = {}
            if found and labels.get(names.LABEL_PRESENT) != "true":
                changes[names.LABEL_PRESENT] = "true"
            elif not found and labels.get(names.LABEL_PRESENT) == "true":
                changes = {key: None for key in labels if key.startswith(DEPLOY)} | {names.LABEL_PRESENT: "false"}
            if found:
                changes |= {DEPLOY + name: "true" for name in _COMPONENTS if not labels.get(DEPLOY + name)}
            if changes:
                writes += 1
                await self._cluster.patch(manifests.NODE, node["metadata"]["name"], {"metadata": {"labels": changes}})
        return writes

    async def remove_disabled(self) -> int:
        """What it does in every pass where its policy has no device plugin: it deletes by name. Returns how much there was."""
        account = names.SERVICE_ACCOUNT_DEVICE_PLUGIN
        doomed = (
            (manifests.DAEMON_SET, names.DAEMONSET_DEVICE_PLUGIN), (manifests.DAEMON_SET, names.DAEMONSET_MPS),
            (manifests.SERVICE_ACCOUNT, account), (manifests.ROLE, account), (manifests.ROLE_BINDING, account),
            (manifests.CLUSTER_ROLE, account), (manifests.CLUSTER_ROLE_BINDING, account),
        )  # fmt: skip
        done = [
            await self._cluster.delete(kind, name, self._namespace if kind.namespaced else "") for kind, name in doomed
        ]
        return sum(done)

    async def take(self, policy: dict[str, Any]) -> None:
        """Writes its DaemonSet over whatever has its name, as it does after a start."""
        wanted = daemonset(self._namespace, policy)
        key = (manifests.DAEMON_SET, names.DAEMONSET_DEVICE_PLUGIN, self._namespace)
        live = await self._cluster.get(*key)
        if live is None:
            await self._cluster.create(wanted)
        else:
            wanted["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
            await self._cluster.replace(wanted)

    async def lead(self, renewed: str, *, holder: str = "gpu-operator-1") -> None:
        """Shows that it is at work."""
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": names.LEASE_NVIDIA_OPERATOR, "namespace": self._namespace},
            "spec": spec,
        }
        if (
            await self._cluster.patch(
                manifests.LEASE,
                names.LEASE_NVIDIA_OPERATOR,
                {"spec": spec},
                self._namespace,
                patch_type=PatchType.MERGE,
            )
            is None
        ):
            await self._cluster.create(lease)
