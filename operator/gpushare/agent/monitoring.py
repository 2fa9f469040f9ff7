"""What the agent answers over HTTP: whether it lives, whether it is ready, and its figures (`docs/metrics.md`)."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator

from gpushare import __version__
from gpushare.agent.facts import Facts, build_resources
from gpushare.domain.troubles import Cause
from gpushare.kubelet.counting import BOUNDS
from gpushare.serving import metrics, monitoring
from gpushare.serving.metrics import Histogram, Metric

_MIB = 2**20


class Monitoring(monitoring.Monitoring):
    """Metrics and health of the agent."""

    def __init__(self, read: Callable[[], Facts | None]) -> None:
        """`read` gives what the agent knows now; None: it is still starting."""
        self._read = read
        super().__init__()

    def why_not_ready(self) -> str:
        """Empty when the driver answers and the kubelet knows every resource. A refused configuration is no reason."""
        facts = self._read()
        if facts is None:
            return "starting"
        if facts.failure or facts.inventory is None:
            return f"driver: {facts.failure or 'not asked yet'}"
        missing = [
            f"{name}: {standing.message}" for name, standing in facts.standings.items() if not standing.registered
        ]
        return "; ".join(missing)

    def collect(self) -> Iterator[Metric]:
        """Its figures, as they are now."""
        facts = self._read()
        if facts is None:
            return
        yield metrics.gauge("gpushare_build_info", "always 1; the version of the agent", 1, version=__version__)
        for family in (_devices, _errors, _shares, _fractions, _configuration, _kubelet, _calls):
            yield from family(facts)


def _devices(facts: Facts) -> Iterator[Metric]:
    yield metrics.gauge(
        "gpushare_driver_up", "1 when the driver answers", not facts.failure and facts.inventory is not None
    )
    if facts.inventory is None:
        return
    for gpu in facts.inventory.gpus:
        place = {"index": str(gpu.index), "uuid": gpu.uuid}
        text = "1 when the GPU may be given out"
        yield metrics.gauge("gpushare_gpu_healthy", text, gpu.health.healthy, **place, product=gpu.product)
        for mig in gpu.mig:
            place = {"index": f"{gpu.index}:{mig.index}", "uuid": mig.uuid, "gpu_uuid": gpu.uuid}
            text = "1 when the MIG instance may be given out, as far as it is concerned itself"
            yield metrics.gauge("gpushare_mig_instance_healthy", text, mig.health.healthy, **place, profile=mig.profile)
    causes = Tally(trouble.cause for trouble in facts.troubles)
    for cause in Cause:
        text = "what is wrong with GPUs and MIG instances, by what it takes to end it"
        yield metrics.gauge("gpushare_device_troubles", text, causes[cause], cause=cause)


def _errors(facts: Facts) -> Iterator[Metric]:
    for (uuid, xid), count in sorted(facts.counts.errors.items()):
        text = (
            "errors that GPUs have reported, those of applications too; the uuid is empty where the driver names none"
        )
        yield metrics.counter("gpushare_gpu_errors_total", text, count, uuid=uuid, xid=str(xid))


def _shares(facts: Facts) -> Iterator[Metric]:
    for resource in build_resources(facts.pools, facts.holders):
        text = "shares, or whole devices, that the kubelet is offered"
        about = {"resource": resource.name, "strategy": str(resource.strategy)}
        yield metrics.gauge("gpushare_shares", text, resource.healthy, **about, health="healthy")
        yield metrics.gauge("gpushare_shares", text, resource.total - resource.healthy, **about, health="unhealthy")
        text = "shares, or whole devices, that containers hold, those too that are no longer offered"
        yield metrics.gauge("gpushare_shares_allocated", text, resource.allocated, resource=resource.name)
        text = "shares of each device; 1 where devices are whole"
        yield metrics.gauge("gpushare_shares_per_device", text, resource.replicas, resource=resource.name)
    for resource_name, reason in sorted(facts.waiting.items()):
        text = "1 when the MPS daemon of the resource answers, so that its shares are offered"
        yield metrics.gauge("gpushare_mps_ready", text, not reason, resource=resource_name)


def _fractions(facts: Facts) -> Iterator[Metric]:
    mode, inventory = facts.decision.fractions, facts.inventory
    if mode is None or inventory is None:
        return
    grants = [grant for holding in facts.fractions.values() for grant in holding.grants.values()]
    shared = {share.id.device for pool in facts.pools.values() for share in pool.shares}
    for gpu in inventory.gpus:
        if gpu.uuid not in shared:
            continue
        place, held = {"index": str(gpu.index), "uuid": gpu.uuid}, [each for each in grants if each.uuid == gpu.uuid]
        text = "memory of the GPU that is given out in parts: more than it has where an administrator allows it"
        yield metrics.gauge(
            "gpushare_fraction_memory_bytes", text, int(gpu.memory_mib * mode.memory_scaling) * _MIB, **place
        )
        text = "memory of the GPU that containers were given"
        yield metrics.gauge(
            "gpushare_fraction_memory_allocated_bytes", text, sum(each.memory_mib for each in held) * _MIB, **place
        )
        text = "percent of the GPU's compute that containers were given; those without a limit count as 0"
        yield metrics.gauge(
            "gpushare_fraction_cores_allocated_percent", text, sum(each.cores for each in held), **place
        )
    for reason, count in sorted(facts.counts.refusals.items()):
        text = "containers that were not let in, by reason: docs/fractions.md says what stands behind each"
        yield metrics.counter("gpushare_fraction_refusals_total", text, count, reason=reason)


def _configuration(facts: Facts) -> Iterator[Metric]:
    decision = facts.decision
    text = "1 when the assigned configuration is in force, 0 when it was refused"
    yield metrics.gauge("gpushare_config_applied", text, not decision.refusal)
    if decision.in_force is not None:
        about = {"config": decision.in_force.name, "revision": decision.revision or ""}
        yield metrics.gauge("gpushare_config_info", "always 1; the configuration in force", 1, **about)
    for result in ("applied", "refused", "unchanged"):
        text = "configurations that the agent was given, by what became of them"
        yield metrics.counter("gpushare_config_reloads_total", text, facts.counts.reloads.get(result, 0), result=result)


def _kubelet(facts: Facts) -> Iterator[Metric]:
    for name, standing in facts.standings.items():
        yield metrics.gauge(
            "gpushare_registered", "1 when the kubelet knows the resource", standing.registered, resource=name
        )
    for name, streams in facts.streams.items():
        text = "clients that follow the list of the resource; the kubelet is one"
        yield metrics.gauge("gpushare_list_streams", text, streams, resource=name)
    for (name, succeeded), count in sorted(facts.counts.kubelet.registrations().items()):
        result = "succeeded" if succeeded else "failed"
        text = "registrations with the kubelet"
        yield metrics.counter("gpushare_registrations_total", text, count, resource=name, result=result)


def _calls(facts: Facts) -> Iterator[Metric]:
    for call, durations in facts.counts.kubelet.calls().items():
        yield Histogram(
            name="gpushare_grpc_request_duration_seconds",
            help="how long calls of the kubelet took to answer",
            bounds=BOUNDS,
            counts=durations.counts,
            sum=durations.seconds,
            labels={"resource": call.resource, "method": call.method, "code": call.code},
        )
