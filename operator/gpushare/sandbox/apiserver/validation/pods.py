"""Rules of pods and of the templates that make them."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gpushare.domain.manifests import Manifest
from gpushare.sandbox.apiserver import field_errors
from gpushare.sandbox.apiserver.objects import syntax
from gpushare.sandbox.apiserver.statuses import Cause
from gpushare.sandbox.apiserver.validation import affinity, amounts, metadata

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_HOST_PATHS: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_OPERATORS: Final = ("Equal", "Exists")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_CHANGEABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_pod(pod: Manifest) -> Iterator[Cause]:
    """A pod."""
    yield from check_spec(pod.get("spec") or {}, "spec")


def check_template(template: Mapping[str, Any], field: str) -> Iterator[Cause]:
    """The template of a workload."""
    about = template.get("metadata") or {}
    yield from metadata.check_labels(about.get("labels"), f"{field}.labels")
    yield from metadata.check_annotations(about.get("annotations"), f"{field}.annotations")
    yield from check_spec(template.get("spec") or {}, f"{field}.spec")


def check_spec(spec: Mapping[str, Any], field: str) -> Iterator[Cause]:
    """A pod's spec."""
    volumes = spec.get("volumes") or ()
    yield from _check_volumes(volumes, f"{field}.volumes")
    names = {volume.get("name") for volume in volumes}
    if not spec.get("containers"):
        yield field_errors.required(f"{field}.containers")
    yield from _check_containers(spec.get("containers") or (), names, f"{field}.containers")
    yield from _check_containers(spec.get("initContainers") or (), names, f"{field}.initContainers")
    yield from _check_word(spec, "restartPolicy", _RESTART_POLICIES, field)
    yield from _check_word(spec, "dnsPolicy", _DNS_POLICIES, field)
    yield from metadata.check_labels(spec.get("nodeSelector"), f"{field}.nodeSelector")
    if account := spec.get("serviceAccountName"):
        yield from field_errors.all_invalid(f"{field}.serviceAccountName", account, syntax.subdomain(account))
    yield from _check_tolerations(spec.get("tolerations") or (), f"{field}.tolerations")
    if node := (spec.get("affinity") or {}).get("nodeAffinity"):
        yield from affinity.check_node_affinity(node, f"{field}.affinity.nodeAffinity")


def check_update(pod: Manifest, old: Manifest) -> Iterator[Cause]:
    """What may change in a pod: images, some deadlines, more tolerations; nothing else."""
    spec, before = pod["spec"], old["spec"]
    for name in ("containers", "initContainers"):
        if len(spec.get(name) or ()) != len(before.get(name) or ()):
            yield field_errors.forbidden(f"spec.{name}", "pod updates may not add or remove containers")
            return
    kept = [each for each in before.get("tolerations") or () if each not in (spec.get("tolerations") or ())]
    if any(_without_seconds(each) not in map(_without_seconds, spec.get("tolerations") or ()) for each in kept):
        why = "existing toleration can not be modified except its tolerationSeconds"
        yield field_errors.forbidden("spec.tolerations", why)
    allowed = _with_changes_allowed(spec, before)
    if allowed != before:
        yield field_errors.forbidden("spec", f"{_CHANGEABLE}\n{_difference(before, allowed)}")


def _without_seconds(toleration: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def _with_changes_allowed(spec: Manifest, before: Manifest) -> Manifest:
    """The new spec with the old values of all that may change, so that any difference left is one too many."""
    free = ("activeDeadlineSeconds", "tolerations", "schedulingGates")
    result = {name: value for name, value in spec.items() if name not in free}
    result |= {name: before[name] for name in free if name in before}
    for name in ("containers", "initContainers"):
        if name in spec:
            result[name] = [
                {**new, "image": previous.get("image")} for new, previous in zip(spec[name], before[name], strict=True)
            ]
    if spec.get("terminationGracePeriodSeconds") == 1 and before.get("terminationGracePeriodSeconds", 0) < 0:
        result["terminationGracePeriodSeconds"] = before["terminationGracePeriodSeconds"]
    return result


def _difference(before: Manifest, after: Manifest) -> str:
    old, new = (json.dumps(each, indent=2, sort_keys=True).splitlines() for each in (before, after))
    # Without the two lines that name files.
    return "\n".join(list(difflib.unified_diff(old, new, lineterm=""))[2:]) + "\n"


def _check_containers(containers: Sequence[Mapping[str, Any]], volumes: set[Any], field: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for number, container in enumerate(containers):
        here = field_errors.at(field, number)
        name = container.get("name", "")
        yield from _check_unique_label(name, seen, f"{here}.name")
        if not container.get("image"):
            yield field_errors.required(f"{here}.image")
        yield from _check_word(container, "imagePullPolicy", _PULL_POLICIES, here)
        yield from _check_ports(container.get("ports") or (), f"{here}.ports")
        yield from _check_variables(container.get("env") or (), f"{here}.env")
        yield from _check_mounts(container.get("volumeMounts") or (), volumes, f"{here}.volumeMounts")
        yield from amounts.check_requirements(container.get("resources") or {}, f"{here}.resources")


def _check_unique_label(name: str, seen: set[str], field: str) -> Iterator[Cause]:
    if not name:
        yield field_errors.required(field)
        return
    yield from field_errors.all_invalid(field, name, syntax.label(name))
    if name in seen:
        yield field_errors.duplicate(field, name)
    seen.add(name)


def _check_word(parent: Mapping[str, Any], name: str, allowed: Sequence[str], field: str) -> Iterator[Cause]:
    if (word := parent.get(name)) and word not in allowed:
        yield field_errors.unsupported(f"{field}.{name}", word, allowed)


def _check_ports(ports: Sequence[Mapping[str, Any]], field: str) -> Iterator[Cause]:
    for number, port in enumerate(ports):
        here = field_errors.at(field, number)
        if not port.get("containerPort"):
            yield field_errors.required(f"{here}.containerPort")
        for name in ("containerPort", "hostPort"):
            if port.get(name) and not 0 < port[name] < 65536:
                yield field_errors.invalid(f"{here}.{name}", port[name], "must be between 1 and 65535, inclusive")
        yield from _check_word(port, "protocol", ("SCTP", "TCP", "UDP"), here)


def _check_variables(variables: Sequence[Mapping[str, Any]], field: str) -> Iterator[Cause]:
    for number, variable in enumerate(variables):
        here = field_errors.at(field, number)
        if not variable.get("name"):
            yield field_errors.required(f"{here}.name")
        name = variable.get("name", "")
        yield from field_errors.all_invalid(f"{here}.name", name, syntax.variable_name(name))
        if variable.get("value") and variable.get("valueFrom"):
            yield field_errors.invalid(f"{here}.valueFrom", "", "may not be specified when `value` is not empty")


def _check_mounts(mounts: Sequence[Mapping[str, Any]], volumes: set[Any], field: str) -> Iterator[Cause]:
    paths: set[str] = set()
    for number, mount in enumerate(mounts):
        here = field_errors.at(field, number)
        name, path = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield field_errors.required(f"{here}.name")
        elif name not in volumes:
            yield field_errors.not_found(f"{here}.name", name)
        if not path:
            yield field_errors.required(f"{here}.mountPath")
        if path in paths:
            yield field_errors.invalid(f"{here}.mountPath", path, "must be unique")
        paths.add(path)


def _check_volumes(volumes: Sequence[Mapping[str, Any]], field: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for number, volume in enumerate(volumes):
        here = field_errors.at(field, number)
        yield from _check_unique_label(volume.get("name", ""), seen, f"{here}.name")
        sources = sorted(name for name in volume if name != "name")
        if len(sources) > 1:
            yield field_errors.forbidden(f"{here}.{sources[1]}", "may not specify more than 1 volume type")
        host = volume.get("hostPath")
        if host is not None and not host.get("path"):
            yield field_errors.required(f"{here}.hostPath.path")
        yield from _check_word(host or {}, "type", _HOST_PATHS, f"{here}.hostPath")


def _check_tolerations(tolerations: Sequence[Mapping[str, Any]], field: str) -> Iterator[Cause]:
    for number, toleration in enumerate(tolerations):
        here = field_errors.at(field, number)
        operator = toleration.get("operator", "Equal")
        if key := toleration.get("key"):
            yield from field_errors.all_invalid(f"{here}.key", key, syntax.qualified_name(key))
        elif operator != "Exists":
            why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield field_errors.invalid(f"{here}.operator", toleration.get("operator", ""), why)
        if operator not in _OPERATORS:
            yield field_errors.unsupported(f"{here}.operator", operator, _OPERATORS)
        if operator == "Exists" and toleration.get("value"):
            yield field_errors.invalid(
                f"{here}.operator", toleration["value"], "value must be empty when `operator` is 'Exists'"
            )
        if (effect := toleration.get("effect")) and effect not in _EFFECTS:
            yield field_errors.unsupported(f"{here}.effect", effect, _EFFECTS)
        if "tolerationSeconds" in toleration and toleration.get("effect") != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield field_errors.invalid(f"{here}.effect", toleration.get("effect", ""), why)
