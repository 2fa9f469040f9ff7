"""Shares NVIDIA GPUs on Kubernetes. Start with `docs/architecture.md`; the layers are in `.importlinter`."""

from __future__ import annotations

__version__ = "0.1.0"
