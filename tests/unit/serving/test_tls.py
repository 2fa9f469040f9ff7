"""A certificate that keeps itself."""

import asyncio
import base64
import logging
import ssl
from datetime import UTC, datetime, timedelta

import pytest

from gpushare import names
from gpushare.domain import manifests
from gpushare.errors import ClusterUnavailable, Conflict
from gpushare.serving import certificates, renewing, tls
from gpushare.serving.certificates import Authority
from gpushare.serving.http import HttpServer, Request, Response
from gpushare.serving.tls import Place, ServingCertificate
from support.memory_cluster import MemoryCluster

NAMESPACE, SECRET, HOOKS = "gpu-operator", "gpushare-scheduler-tls", "gpushare-scheduler"
PLACE = Place(
    namespace=NAMESPACE,
    secret=SECRET,
    owner=names.SCHEDULER,
    hosts=("gpushare-scheduler.gpu-operator.svc", "localhost", "127.0.0.1"),
    webhooks=((manifests.MUTATING_WEBHOOK_CONFIGURATION, HOOKS),),
)
NOW = datetime.now(UTC).replace(microsecond=0)
LOG = logging.getLogger("test")


@pytest.fixture
async def cluster() -> MemoryCluster:
    cluster = MemoryCluster()
    webhook = {"name": "a.gpushare.dev", "clientConfig": {"service": {"name": "x", "namespace": NAMESPACE}}}
    await cluster.create({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": HOOKS}, "webhooks": [webhook, {**webhook, "name": "b.gpushare.dev"}],
    })  # fmt: skip
    return cluster


def kept(cluster: MemoryCluster) -> dict[str, str]:
    data = cluster.now(manifests.SECRET, SECRET, NAMESPACE)["data"]
    return {name: base64.b64decode(text).decode() for name, text in data.items()}


def bundles(cluster: MemoryCluster) -> set[str]:
    found = cluster.now(manifests.MUTATING_WEBHOOK_CONFIGURATION, HOOKS)["webhooks"]
    return {base64.b64decode(webhook["clientConfig"].get("caBundle", "")).decode() for webhook in found}


def replica(cluster: MemoryCluster, at: datetime = NOW, place: Place = PLACE) -> ServingCertificate:
    return ServingCertificate(cluster, place, log=LOG, now=lambda: at)


async def test_first(cluster: MemoryCluster) -> None:
    """The first replica makes all there is: authority, certificate, and the trust of the webhooks."""
    certificate = replica(cluster)
    await certificate.prepare()

    found = kept(cluster)
    facts = certificates.read_facts(found["tls.crt"])
    assert facts.hosts == set(PLACE.hosts)
    assert facts.ends == NOW + renewing.LIFE
    assert certificates.read_facts(found["ca.crt"]).ends == NOW + renewing.AUTHORITY_LIFE
    assert bundles(cluster) == {found["ca.crt"]}
    assert certificate.gauge().value == (NOW + renewing.LIFE).timestamp()


async def test_nothing_due(cluster: MemoryCluster) -> None:
    """What is good is not written again, by whichever replica looks."""
    await replica(cluster).prepare()
    cluster.writes.clear()

    await replica(cluster, NOW + timedelta(days=50)).prepare()

    assert cluster.writes == []


async def test_replicas_agree(cluster: MemoryCluster) -> None:
    """Two replicas that start at once serve one and the same certificate."""
    one, two = replica(cluster), replica(cluster)

    await asyncio.gather(one.prepare(), two.prepare())

    assert one.gauge() == two.gauge()
    assert len([write for write in cluster.writes if write.startswith("create Secret")]) >= 1
    assert bundles(cluster) == {kept(cluster)["ca.crt"]}


async def test_another_was_first(cluster: MemoryCluster) -> None:
    """A renewal that somebody else has done meanwhile is taken over, not done again."""
    first = replica(cluster)
    await first.prepare()
    late = NOW + timedelta(days=70)
    cluster.refusals["replace Secret"] = Conflict("the object has been modified")

    with pytest.raises(Conflict):
        await replica(cluster, late).check()
    await replica(cluster, late).check()
    renewed = kept(cluster)
    await first.check()

    assert kept(cluster) == renewed
    assert first.gauge().value == (late + renewing.LIFE).timestamp()


@pytest.mark.parametrize(
    ("days", "certificate", "authority"),
    [
        pytest.param(59, False, False, id="a good third of its life is left"),
        pytest.param(61, True, False, id="a month before the certificate runs out"),
        pytest.param(200, True, False, id="after it has run out"),
        pytest.param(7 * 365, True, True, id="three years before the authority runs out"),
        pytest.param(11 * 365, True, True, id="after the authority has run out"),
    ],
)
async def test_renewed(cluster: MemoryCluster, days: int, certificate: bool, authority: bool) -> None:
    """Certificate and authority are renewed well before they run out."""
    await replica(cluster).prepare()
    before = kept(cluster)

    await replica(cluster, NOW + timedelta(days=days)).prepare()

    after = kept(cluster)
    assert (after["tls.crt"] != before["tls.crt"], after["ca.key"] != before["ca.key"]) == (certificate, authority)
    assert bundles(cluster) == {after["ca.crt"]}


async def test_old_authority_is_trusted(cluster: MemoryCluster) -> None:
    """While replicas still show certificates of the authority before, it stays in the bundle; then it goes."""
    await replica(cluster).prepare()
    old = kept(cluster)["ca.crt"]

    await replica(cluster, NOW + timedelta(days=7 * 365)).prepare()
    assert certificates.split(kept(cluster)["ca.crt"])[1:] == [old]

    await replica(cluster, NOW + timedelta(days=14 * 365)).prepare()
    assert old not in kept(cluster)["ca.crt"]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({}, id="empty"),
        pytest.param({"tls.crt": "!", "tls.key": "!"}, id="no base64"),
        pytest.param({"tls.crt": "eA==", "tls.key": "eA==", "ca.crt": "eA==", "ca.key": "eA=="}, id="no certificates"),
    ],
)
async def test_spoilt(cluster: MemoryCluster, data: dict[str, str]) -> None:
    """A Secret of ours that holds nothing usable is filled again."""
    await replica(cluster).prepare()
    cluster.now(manifests.SECRET, SECRET, NAMESPACE)["data"] = data

    await replica(cluster).check()

    assert certificates.read_facts(kept(cluster)["tls.crt"]).ends == NOW + renewing.LIFE


async def test_hosts_grow(cluster: MemoryCluster) -> None:
    """A version that needs another host adds it; the one before does not take it away again."""
    await replica(cluster).prepare()
    more = Place(namespace=NAMESPACE, secret=SECRET, owner=PLACE.owner, hosts=("another.gpu-operator.svc",))

    await replica(cluster, place=more).check()
    grown = kept(cluster)["tls.crt"]
    await replica(cluster).check()

    assert certificates.read_facts(grown).hosts == {*PLACE.hosts, *more.hosts}
    assert kept(cluster)["tls.crt"] == grown


async def test_overwritten_bundle(cluster: MemoryCluster) -> None:
    """A caBundle that an upgrade has overwritten is set right."""
    certificate = replica(cluster)
    await certificate.prepare()
    cluster.now(manifests.MUTATING_WEBHOOK_CONFIGURATION, HOOKS)["webhooks"][1]["clientConfig"]["caBundle"] = "Cg=="

    await certificate.check()

    assert bundles(cluster) == {kept(cluster)["ca.crt"]}


async def test_secret_of_another(cluster: MemoryCluster) -> None:
    """A certificate that cert-manager makes is served as it is, and nothing is written."""
    pair = Authority.create("theirs").issue("theirs", PLACE.hosts)
    data = {"tls.crt": pair.certificate, "tls.key": pair.key}
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in data.items()}
    metadata = {"name": SECRET, "namespace": NAMESPACE}
    await cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded})
    cluster.writes.clear()

    certificate = replica(cluster)
    await certificate.prepare()

    assert cluster.writes == []
    assert certificate.gauge().value == certificates.read_facts(pair.certificate).ends.timestamp()


async def test_waits_for_the_cluster(cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """An API server that is away for a moment delays the start; it does not end it."""
    monkeypatch.setattr(tls, "_RETRY_SECONDS", 0.01)
    cluster.refusals["create Secret"] = ClusterUnavailable("away")

    await replica(cluster).prepare()

    assert kept(cluster)["tls.crt"]


async def test_served_without_restart(cluster: MemoryCluster) -> None:
    """A running server shows the renewed certificate to the next client, who trusts it by the same bundle."""
    times = [NOW]
    certificate = ServingCertificate(cluster, PLACE, log=LOG, now=lambda: times[0])
    await certificate.prepare()

    async def answer(_: Request) -> Response:
        return Response()

    async def shown() -> dict:
        context = ssl.create_default_context(cadata=kept(cluster)["ca.crt"])
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        found = writer.get_extra_info("peercert")
        writer.close()
        await writer.wait_closed()
        return found

    server = HttpServer(answer, LOG)
    port = await server.start("127.0.0.1", 0, tls=certificate.context)
    try:
        first = await shown()
        # Lost rather than out of date, since the clock of the client is the real one.
        cluster.now(manifests.SECRET, SECRET, NAMESPACE)["data"]["tls.crt"] = ""
        times[0] = NOW + timedelta(minutes=1)
        await certificate.check()
        second = await shown()
    finally:
        await server.stop()

    assert first["serialNumber"] != second["serialNumber"]
    assert first["issuer"] == second["issuer"]
