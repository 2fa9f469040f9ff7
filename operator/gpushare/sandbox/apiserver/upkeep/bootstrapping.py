"""What is in a cluster before anybody asks for anything: namespaces, roles, priority classes, the service `kubernetes`."""

from __future__ import annotations

from collections.abc import Iterator

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver.access import roles
from gpushare.sandbox.apiserver.handling.writing import Write, Writer
from gpushare.sandbox.apiserver.resources import Registry

_PRIORITIES = (
    ("system-cluster-critical", 2_000_000_000,
     "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."),
    ("system-node-critical", 2_000_001_000, "Used for system critical pods that must not be moved from their current node."),
)  # fmt: skip
NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


def furnish(registry: Registry, writer: Writer, ca_pem: str) -> None:
    """Creates all of it."""
    write = Write(manager="kube-apiserver")
    for manifest in (*_namespaces(), *roles.bootstrap(), *_objects(ca_pem)):
        resource = registry.find_kind(manifest["apiVersion"], manifest["kind"])
        assert resource is not None, manifest["kind"]
        writer.create(resource, manifest["metadata"].get("namespace", ""), manifest, write)


def _namespaces() -> Iterator[Manifest]:
    for name in NAMESPACES:
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _objects(ca_pem: str) -> Iterator[Manifest]:
    # Read by programs that authenticate requests of the API server; `kubectl get configmaps -A` shows both.
    names = ("client-ca-file", "requestheader-client-ca-file")
    headers = {"allowed-names": "[]", "extra-headers-prefix": '["X-Remote-Extra-"]', "group-headers": '["X-Remote-Group"]',
               "username-headers": '["X-Remote-User"]'}  # fmt: skip
    data = {**dict.fromkeys(names, ca_pem), **{f"requestheader-{name}": value for name, value in headers.items()}}
    yield _config_map("extension-apiserver-authentication", data)
    yield _config_map("kube-apiserver-legacy-service-account-token-tracking", {"since": "2026-01-01"})
    for name, value, about in _PRIORITIES:
        yield {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
               "description": about}  # fmt: skip
    ports = [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]
    labels = {"component": "apiserver", "provider": "kubernetes"}
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "spec": {"clusterIP": "10.96.0.1", "ports": ports, "type": "ClusterIP"},
    }


def _config_map(name: str, data: dict[str, str]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "kube-system"},
        "data": data,
    }
