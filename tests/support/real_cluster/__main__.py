"""`make cluster`: a real Kubernetes with one node of four GPUs and this project on it, to look around in until Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
import sys

from support.real_cluster import preflight, starting


def main() -> int:
    """Starts it, says how to get at it, and waits."""
    if refusal := preflight.refuse(has_node=True):
        print(refusal, file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt), starting.gpu_node() as node:
        print("installing ...", flush=True)
        node.install()
        print(f"export KUBECONFIG={node.cluster.kubeconfig()}\nCtrl-C ends it.", flush=True)
        signal.pause()
    return 0


sys.exit(main())
