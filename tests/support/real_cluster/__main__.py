"""`make cluster`: a real Kubernetes with one node of four GPUs and this project on it, to look around in until Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
import sys

from support.real_cluster import starting


def main() -> int:
    """Starts it, says how to get at it, and waits."""
    lacks = starting.find_lacks(has_node=True)
    if lacks:
        print(f"this machine cannot run a cluster; it lacks {'; '.join(lacks)}", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt), starting.gpu_node() as node:
        print("installing ...", flush=True)
        node.install()
        print(f"export KUBECONFIG={node.cluster.kubeconfig()}\nCtrl-C ends it.", flush=True)
        signal.pause()
    return 0


sys.exit(main())
