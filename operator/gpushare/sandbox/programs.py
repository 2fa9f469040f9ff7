"""What our image runs in the sandbox: the real programs, with a simulated driver below the agent. Wired by `app`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from gpushare.nvml.simulated import SimulatedNvml
from gpushare.sandbox import driver_programs
from gpushare.sandbox.node.specs import Invocation, Program


def build_programs(hardware: Mapping[str, SimulatedNvml]) -> Mapping[str, Program]:
    """The commands of the image by name. `hardware`: the driver of each node, by the node's name."""

    async def agent(invocation: Invocation) -> int:
        from gpushare.agent import app  # late: nodes without an agent need none of it

        return await _run_with_driver(app.run, invocation, hardware)

    async def mps(invocation: Invocation) -> int:
        from gpushare.mps import app  # late, as above
        from gpushare.mps.options import MOUNT_SHM

        if MOUNT_SHM in invocation.argv:
            # What it mounts is a folder of the node here, where every container sees it anyway.
            (invocation.root / "mps/shm").mkdir(parents=True, exist_ok=True)
            return 0
        return await _run_with_driver(app.run, invocation, hardware)

    async def controller(invocation: Invocation) -> int:
        from gpushare.controller import app  # late, as above

        return await _run(app.run, invocation)

    async def cleanup(invocation: Invocation) -> int:
        from gpushare.controller import cleanup as app  # late, as above

        return await _run(app.run, invocation)

    async def crds(invocation: Invocation) -> int:
        from gpushare.controller import definitions as app  # late, as above

        return await _run(app.run, invocation)

    async def scheduler(invocation: Invocation) -> int:
        from gpushare.scheduler import app  # late, as above

        return await _run(app.run, invocation)

    return {
        "agent": agent,
        "cleanup": cleanup,
        "controller": controller,
        "crds": crds,
        "mps": mps,
        "scheduler": scheduler,
    }


def _run_with_driver(
    run: Callable[..., Awaitable[int]], invocation: Invocation, hardware: Mapping[str, SimulatedNvml]
) -> Awaitable[int]:
    driver_programs.install(invocation.root)
    # Two agents of a node may overlap: the one that ends disconnects only itself.
    return _run(run, invocation, nvml=hardware[invocation.node].connect())


def _run(run: Callable[..., Awaitable[int]], invocation: Invocation, **more: Any) -> Awaitable[int]:
    return run(
        invocation.argv, invocation.environ, root=invocation.root, log=invocation.log, stop=invocation.stop, **more
    )
