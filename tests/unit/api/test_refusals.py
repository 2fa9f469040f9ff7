"""Texts that are refused: where the problem is, and what the user reads."""

from __future__ import annotations

import pytest

from gpushare.api.documents import MAX_BYTES
from gpushare.api.parsing import parse_sharing

LONG = "a" * 50


def entry(fields: str) -> str:
    """A text with one entry, whose fields begin in line 4."""
    return f"sharing:\n  timeSlicing:\n    resources:\n    - {{{fields}}}\n"


ENTRY = "sharing.timeSlicing.resources[0]"


@pytest.mark.parametrize(
    ("text", "path", "line", "message"),
    [
        pytest.param("- a", "", 1, "must hold keys, indented below it, not a list", id="list at the top"),
        pytest.param(
            "apiVersion: v1\nkind: ConfigMap\ndata:\n  any: |-\n    version: v1\n",
            "",
            1,
            "a whole ConfigMap stands here; write only the configuration, as it stands below a key of its data",
            id="the manifest itself",
        ),
        pytest.param("nothing", "", 1, 'must hold keys, indented below it, not "nothing"', id="word at the top"),
        pytest.param("? [a]\n: b", "", 1, None, id="key that is a list"),
        pytest.param("flags: {mpsRoot: !!binary aGk=}", "flags.mpsRoot", 1, None, id="bytes"),
        pytest.param("#" * (MAX_BYTES + 1), "", None, "longer than 64 KiB; shorten it", id="too long"),
        pytest.param("[" * 5000, "", None, "nested too deeply to be a configuration", id="too deep"),
        pytest.param(
            f"version: {'9' * 5000}", "", 1, "cannot be read as YAML: a number of so many digits", id="number"
        ),
        pytest.param(
            'flags:\n  "\\ud800": 1\n',
            "",
            2,
            "holds half a character, such as \\ud800, which is no text",
            id="half a character",
        ),
        pytest.param("version: v2", "version", 1, '"v2" is not known; write v1', id="version"),
        pytest.param("version: 1", "version", 1, '"1" is not known; write v1', id="version as a number"),
        pytest.param(
            "flags:\n  a: 1\nflags:\n  b: 1",
            "flags",
            3,
            "stands here twice, first in line 1; keep one of the two",
            id="duplicate key",
        ),
        pytest.param("FLAGS: {}", "FLAGS", 1, 'unknown key; did you mean "flags"?', id="other case"),
        pytest.param(
            entry("name: gpu, replica: 2"), f"{ENTRY}.replica", 4, 'unknown key; did you mean "replicas"?', id="typo"
        ),
        pytest.param(
            "resources: {migs: []}", "resources.migs", 1, 'unknown key; did you mean "mig"?', id="key of many guides"
        ),
        pytest.param(
            "xyz: 1",
            "xyz",
            1,
            "unknown key; known here: flags, gpushare, imex, resources, sharing, version",
            id="unknown key",
        ),
        pytest.param(
            "flags:\n  renameByDefault: true",
            "flags.renameByDefault",
            2,
            '"renameByDefault" belongs under sharing.timeSlicing',
            id="wrong level",
        ),
        pytest.param(
            "sharing:\n  resources: []",
            "sharing.resources",
            2,
            '"resources" belongs under sharing.timeSlicing',
            id="a level left out",
        ),
        pytest.param("timeSlicing: {}", "timeSlicing", 1, '"timeSlicing" belongs under sharing', id="two levels up"),
        pytest.param(
            "sharing: {replicas: 4}",
            "sharing.replicas",
            1,
            '"replicas" belongs under each entry of sharing.timeSlicing.resources',
            id="of an entry",
        ),
        pytest.param(
            "sharing: {version: v1}",
            "sharing.version",
            1,
            '"version" belongs under the top level',
            id="too deep a level",
        ),
        pytest.param("7: x", "[7]", 1, None, id="key that is a number"),
        pytest.param(
            "sharing:\n  timeSlicing:\n",
            "sharing.timeSlicing",
            2,
            "is empty; name resources in it, or remove it",
            id="null timeSlicing",
        ),
        pytest.param(
            "sharing: {mps: {}}",
            "sharing.mps.resources",
            1,
            "is missing; list what is shared: name nvidia.com/gpu, replicas 4",
            id="empty mps",
        ),
        pytest.param(
            "sharing: {mps: {resources: }}",
            "sharing.mps.resources",
            1,
            'must be a list, each item after a "-", not empty',
            id="null resources",
        ),
        pytest.param(
            "sharing: {mps: {resources: []}}",
            "sharing.mps.resources",
            1,
            "is empty; name at least one resource",
            id="empty resources",
        ),
        pytest.param(
            entry("replicas: 2"),
            f"{ENTRY}.name",
            4,
            "is missing; write a resource, such as nvidia.com/gpu",
            id="no name",
        ),
        pytest.param(
            entry("name: gpu"),
            f"{ENTRY}.replicas",
            4,
            "is missing; write how many shares a device has, such as 4",
            id="no replicas",
        ),
        pytest.param(
            entry("name: gpu, replicas: 0"),
            f"{ENTRY}.replicas",
            4,
            "0 shares make no sense; write 2 or more, or 1 for not shared",
            id="zero replicas",
        ),
        pytest.param(
            entry("name: gpu, replicas: -3"),
            f"{ENTRY}.replicas",
            4,
            "-3 shares make no sense; write 2 or more, or 1 for not shared",
            id="negative replicas",
        ),
        pytest.param(
            entry("name: gpu, replicas: '4'"), f"{ENTRY}.replicas", 4, "is text; write 4 without quotes", id="quoted"
        ),
        pytest.param(
            entry("name: gpu, replicas: 4.5"), f"{ENTRY}.replicas", 4, "must be a whole number, not 4.5", id="fraction"
        ),
        pytest.param(
            entry("name: gpu, replicas: "),
            f"{ENTRY}.replicas",
            4,
            "must be a whole number, not empty",
            id="null replicas",
        ),
        pytest.param(
            entry("name: gpu, replicas: yes"), f"{ENTRY}.replicas", 4, "must be a whole number, not true", id="yes"
        ),
        pytest.param(
            entry("name: amd.com/gpu, replicas: 2"),
            f"{ENTRY}.name",
            4,
            '"amd.com/gpu" is not a resource of nvidia.com; names look like nvidia.com/gpu',
            id="another vendor",
        ),
        pytest.param(
            entry("name: mig-1g.5gb+me, replicas: 2"),
            f"{ENTRY}.name",
            4,
            'a resource name has "." where the MIG profile has "+"; write "nvidia.com/mig-1g.5gb.me"',
            id="profile for a name",
        ),
        pytest.param(
            entry("name: GPU, replicas: 2"),
            f"{ENTRY}.name",
            4,
            '"GPU" is not a resource name; use lower-case letters, digits, "-" and "."',
            id="capitals",
        ),
        pytest.param(
            entry(f"name: {LONG}{LONG}, replicas: 2"),
            f"{ENTRY}.name",
            4,
            f'"nvidia.com/{LONG}{LONG}" has 111 characters; Kubernetes takes 63',
            id="long name",
        ),
        pytest.param(entry("name: gpu, replicas: 2, rename: ''"), f"{ENTRY}.rename", 4, None, id="empty rename"),
        pytest.param(entry("name: gpu, replicas: 2, devices: ALL"), f"{ENTRY}.devices", 4, None, id="ALL"),
        pytest.param(entry("name: gpu, replicas: 2, devices: "), f"{ENTRY}.devices", 4, None, id="null devices"),
        pytest.param(entry("name: gpu, replicas: 2, devices: 0"), f"{ENTRY}.devices", 4, None, id="no device"),
        pytest.param(entry("name: gpu, replicas: 2, devices: []"), f"{ENTRY}.devices", 4, None, id="empty devices"),
        pytest.param(
            entry("name: gpu, replicas: 2, devices: {a: b}"), f"{ENTRY}.devices", 4, None, id="keys as devices"
        ),
        pytest.param(
            entry("name: gpu, replicas: 2, devices: [GPU-1]"),
            f"{ENTRY}.devices",
            4,
            '"GPU-1" names no device; write an index (0), a MIG index (0:1) or a UUID (GPU-..., MIG-...)',
            id="no UUID",
        ),
        pytest.param(entry("name: gpu, replicas: 2, devices: [-1]"), f"{ENTRY}.devices", 4, None, id="negative index"),
        pytest.param(
            "flags: {migStrategy: all}",
            "flags.migStrategy",
            1,
            'must be one of none, single, mixed, not "all"',
            id="MIG strategy",
        ),
        pytest.param(
            "flags: {failOnInitError: 1}", "flags.failOnInitError", 1, "must be true or false, not 1", id="no boolean"
        ),
        pytest.param(
            "flags: {deviceDiscoveryStrategy: tegra}",
            "flags.deviceDiscoveryStrategy",
            1,
            'must be one of auto, nvml, not "tegra"',
            id="discovery that nobody does here",
        ),
        pytest.param("flags: {mpsRoot: 1}", "flags.mpsRoot", 1, "must be text, not 1; put it in quotes", id="no text"),
        pytest.param(
            "flags: {plugin: {deviceListStrategy: 'envvar, cdi-cri'}}",
            "flags.plugin.deviceListStrategy",
            1,
            "several strategies are a list in a file; write [envvar, cdi-cri]",
            id="comma list",
        ),
        pytest.param(
            "flags: {plugin: {deviceListStrategy: []}}",
            "flags.plugin.deviceListStrategy",
            1,
            "an empty list would start containers without any GPU; name a strategy, such as envvar",
            id="no strategy",
        ),
        pytest.param(
            "flags: {plugin: {deviceListStrategy: [x]}}", "flags.plugin.deviceListStrategy[0]", 1, None, id="strategy"
        ),
        pytest.param("flags: {gfd: {sleepInterval: 1day}}", "flags.gfd.sleepInterval", 1, None, id="no duration"),
        pytest.param("flags: {gfd: {sleepInterval: true}}", "flags.gfd.sleepInterval", 1, None, id="boolean duration"),
        pytest.param("flags: {gfd: {sleepInterval: -5s}}", "flags.gfd.sleepInterval", 1, None, id="negative duration"),
        pytest.param(
            "imex: {channelIDs: [2]}",
            "imex.channelIDs",
            1,
            "only channel 0 can be asked for; write [0] or []",
            id="channel",
        ),
        pytest.param("imex: {channelIDs: 0}", "imex.channelIDs", 1, None, id="channel without a list"),
        pytest.param("imex: {channelIDs: ['0']}", "imex.channelIDs[0]", 1, None, id="quoted channel"),
        pytest.param("resources: {gpus: [{name: gpu}]}", "resources.gpus[0].pattern", 1, "is missing", id="pattern"),
        pytest.param("gpushare: {slots: 0}", "gpushare.slots", 1, "must be at least 1", id="slots"),
        pytest.param(
            "gpushare: {fractions: hamy}",
            "gpushare.fractions",
            1,
            'must be one of none, hami, aliyun, not "hamy"',
            id="unknown dialect",
        ),
        pytest.param(
            "gpushare: {fractions: hami}\nsharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}]}}",
            "gpushare.fractions",
            1,
            "fractions share the GPUs already, and so does sharing.timeSlicing; keep one of the two",
            id="fractions and shares",
        ),
        pytest.param(
            "gpushare:\n  fractions: aliyun\n  isolation: exclusive",
            "gpushare.isolation",
            3,
            "aliyun gives out units of memory, which are never a whole GPU; write hami-core, mps or none, "
            'or "fractions: hami"',
            id="isolation that the dialect lacks",
        ),
        pytest.param(
            "gpushare: {fractions: hami, isolation: mpx}",
            "gpushare.isolation",
            1,
            'must be one of none, mps, hami-core, mig, exclusive, not "mpx"',
            id="unknown isolation",
        ),
        pytest.param(
            "gpushare: {fractions: hami, isolation: exclusive, slots: 4}",
            "gpushare.slots",
            1,
            "exclusive gives a GPU to one container; remove slots, or choose another isolation",
            id="exclusive slots",
        ),
        pytest.param(
            "gpushare: {fractions: hami, isolation: exclusive, memoryScaling: 2}",
            "gpushare.memoryScaling",
            1,
            "exclusive gives a GPU to one container, who cannot have more than all of it; remove it",
            id="exclusive and over-committed",
        ),
        pytest.param(
            "gpushare: {memoryScaling: 0.5}", "gpushare.memoryScaling", 1, "must be at least 1", id="scaling below 1"
        ),
        pytest.param(
            "gpushare: {coreScaling: 1000}", "gpushare.coreScaling", 1, "must be at most 100", id="scaling far above 1"
        ),
        pytest.param(
            "gpushare: {memoryScaling: .inf}",
            "gpushare.memoryScaling",
            1,
            "must be a number that ends",
            id="scaling without end",
        ),
        pytest.param(
            "gpushare: {coreScaling: '2'}", "gpushare.coreScaling", 1, 'must be a number, not "2"', id="quoted scaling"
        ),
        pytest.param(
            "sharing:\n  timeSlicing: {resources: [{name: gpu, replicas: 2}]}\n  mps: {resources: [{name: gpu, replicas: 2}]}",
            "sharing",
            1,
            "timeSlicing and mps exclude each other; keep one of the two",
            id="both strategies",
        ),
        pytest.param(
            "sharing: {mps: {resources: [\n  {name: gpu, replicas: 2},\n  {name: nvidia.com/gpu, replicas: 3}]}}",
            "sharing.mps.resources[1].name",
            3,
            '"nvidia.com/gpu" is already shared by sharing.mps.resources[0]; keep one of the two',
            id="resource twice",
        ),
        pytest.param(
            "sharing: {mps: {resources: [\n  {name: gpu, replicas: 2, rename: x},\n  {name: z, replicas: 3, rename: x}]}}",
            "sharing.mps.resources[1].rename",
            3,
            '"nvidia.com/x" is already what sharing.mps.resources[0] is offered as; give another rename',
            id="rename twice",
        ),
        pytest.param(
            f"sharing: {{mps: {{renameByDefault: true, resources: [{{name: {LONG}, replicas: 2}}]}}}}",
            "sharing.mps.resources[0].name",
            1,
            f'"nvidia.com/{LONG}.shared" has 68 characters; Kubernetes takes 63: give a shorter rename',
            id="too long once renamed",
        ),
    ],
)
def test_refused(text: str, path: str, line: int | None, message: str | None) -> None:
    """One problem, at its place, with what to write instead. Without a message here, the words are free."""
    parsed = parse_sharing(text)

    assert parsed.config is None
    assert [problem.path for problem in parsed.problems] == [path]
    assert parsed.problems[0].line == line
    if message is not None:
        assert parsed.problems[0].message == message


def test_every_problem_is_told() -> None:
    """A person mends a text once, not once a problem; the order is that of the text."""
    parsed = parse_sharing(
        "flags: {migStrategy: some}\nsharing:\n  timeSlicing:\n    resources:\n    - {name: A, replicas: 0}\n    - {}\n"
    )

    assert [str(problem).split(":")[0] for problem in parsed.problems] == [
        "flags.migStrategy (line 1)",
        "sharing.timeSlicing.resources[0].name (line 5)",
        "sharing.timeSlicing.resources[0].replicas (line 5)",
        "sharing.timeSlicing.resources[1].name (line 6)",
        "sharing.timeSlicing.resources[1].replicas (line 6)",
    ]
