"""Kubeconfigs that trust the server. Called by `server`."""

from __future__ import annotations

import base64
from typing import Any


def build_kubeconfig(*, server: str, ca_pem: str, user: str, token: str, namespace: str = "") -> dict[str, Any]:
    """A kubeconfig with one context, ready to be written as YAML."""
    name = "sandbox"
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(ca_pem.encode()).decode()}
    context = {"cluster": name, "user": user, **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
    }
