"""Reads what a pod asks for. Called by admission, which refuses what has problems, and by the scheduler's extender."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpushare.domain.fractions import Dialect
from gpushare.domain.manifests import Manifest
from gpushare.errors import Problem
from gpushare.placement import aliyun, hami
from gpushare.placement.constraining import AnnotationReader
from gpushare.placement.reading import ContainerReader, Findings, read_containers
from gpushare.placement.settings import RequestSettings
from gpushare.placement.shapes import ContainerRequest, PodRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """A pod as far as fractions are concerned."""

    request: PodRequest | None = None
    """None without problems: the pod does not concern us."""
    problems: tuple[Problem, ...] = ()
    """Why it can never run; then there is no request."""
    warnings: tuple[Problem, ...] = ()
    """What its writer may not expect."""


def read_request(pod: Manifest, settings: RequestSettings) -> ReadRequest:
    """Reads a pod in whichever dialect. Whether admission has filled in defaults already makes no difference."""
    findings = Findings()
    readers = tuple(read_containers(pod, findings))
    has_plain = any(reader.read(settings.count) for reader in readers)
    is_hami = any(hami.asks_for_fractions(reader, settings) for reader in readers)
    is_aliyun = any(aliyun.asks_for_fractions(reader, settings) for reader in readers)
    count = aliyun.read_count(pod, findings, has_memory=is_aliyun)
    if is_aliyun and (is_hami or has_plain):
        words = (aliyun.words(settings), (settings.count, *hami.words(settings)))
        both = " and ".join(_first_named(readers, each) for each in words)
        message = (
            f"asks for both {both}, which no node serves together; write all containers in one of the two dialects"
        )
        return ReadRequest(problems=(*findings.problems, Problem(path="spec", message=message)))
    if is_aliyun:
        aliyun.refuse_mixture(readers, settings)
        containers = (aliyun.read_container(reader, count, settings) for reader in readers)
        return _build(pod, Dialect.ALIYUN, containers, findings, settings)
    if is_hami or (has_plain and settings.claim_plain_gpu):
        containers = (hami.read_container(reader, settings) for reader in readers)
        return _build(pod, Dialect.HAMI, containers, findings, settings)
    for reader in readers:
        hami.mind_priority(reader, settings)
    return ReadRequest(warnings=tuple(findings.warnings))


def _first_named(readers: Iterable[ContainerReader], resources: Iterable[str]) -> str:
    return next(resource for resource in resources if any(reader.has(resource) for reader in readers))


def _build(
    pod: Manifest,
    dialect: Dialect,
    containers: Iterable[ContainerRequest | None],
    findings: Findings,
    settings: RequestSettings,
) -> ReadRequest:
    asking = tuple(container for container in containers if container is not None)
    annotations = AnnotationReader((pod.get("metadata") or {}).get("annotations") or {})
    request = PodRequest(
        dialect=dialect,
        containers=asking,
        constraints=annotations.read_constraints(),
        node_policy=annotations.read_node_policy(settings.node_policy),
        gpu_policy=annotations.read_gpu_policy(),
        weights=annotations.read_weights(),
    )
    problems = (*dict.fromkeys(findings.problems), *annotations.problems)
    return ReadRequest(
        request=request if asking and not problems else None, problems=problems, warnings=tuple(findings.warnings)
    )
