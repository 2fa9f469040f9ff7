"""What `gpushare validate` finds in texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from gpushare import data
from gpushare.domain.devices import GPU, ComputeCapability, Inventory
from gpushare.plan import fields, validation
from gpushare.views import documents
from gpushare.views import validation as views

EXAMPLES = Path(__file__).parents[3] / "examples"

SHARING = """\
version: v1
sharing:
  timeSlicing:
    resources:
    - {name: nvidia.com/gpu, replicas: 4}
"""
MPS = SHARING.replace("timeSlicing", "mps")
POLICY = """\
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  devicePlugin:
    config: {name: sharing, default: al}
"""
CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: sharing}
data:
  all: |
    version: v1
    sharing:
      timeSlicing:
        resources:
        - {name: nvidia.com/gpu, replica: 4}
"""


DEFINITION = yaml.safe_load(data.path_of("crds").joinpath("nvidia.com_clusterpolicies.yaml").read_text())


def lines_of(text: str) -> list[str]:
    checked = validation.check_text(text, fields.schema_of(DEFINITION))
    return list(views.build_lines("f", validation.check_references(checked)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(SHARING, ["f: fine"], id="configuration"),
        pytest.param("", ["f: fine"], id="empty, which is the default of a file"),
        pytest.param(f"---\n{SHARING}", ["f: fine"], id="border first"),
        pytest.param(
            SHARING.replace("replicas", "replica"),
            ['f: sharing.timeSlicing.resources[0].replica (line 5): unknown key; did you mean "replicas"?'],
            id="typo",
        ),
        pytest.param(
            f"{SHARING}---\n{SHARING}",
            ["f: warning: line 7: only the first YAML document counts; what follows this `---` is ignored"],
            id="two configurations",
        ),
        pytest.param(
            CONFIG_MAP,
            ['f: all: sharing.timeSlicing.resources[0].replica (line 10): unknown key; did you mean "replicas"?'],
            id="line of the file",
        ),
        pytest.param(
            f"# a comment\n---\n{POLICY}---\n{CONFIG_MAP.replace('replica:', 'replicas:')}",
            [
                'f: ClusterPolicy p: spec.devicePlugin.config.default: "al" is no key of ConfigMap sharing, which has all'
            ],
            id="default without a key",
        ),
        pytest.param(
            POLICY.replace("config: {name: sharing, default: al}", "image: only/some\n    version: v1"),
            [
                (
                    "f: ClusterPolicy p: spec.devicePlugin (line 5): invalid image specification, without repository; write "
                    "repository, image and version, only image as a full reference, or none of them"
                )
            ],
            id="partial image",
        ),
        pytest.param(
            POLICY.replace("config: {name: sharing, default: al}", "args: [--bogus]"),
            [
                (
                    "f: ClusterPolicy p: spec.devicePlugin.args (line 6): every agent would end on it: "
                    "unknown flag '--bogus'; see --help"
                )
            ],
            id="a flag that there is not",
        ),
        pytest.param(
            "kind: ClusterPolicy\nspec: null\n",
            [
                (
                    "f: ClusterPolicy: spec (line 2): is missing, so nothing is changed; apply the whole policy again "
                    "(`{}` is enough for each part of it)"
                )
            ],
            id="no spec",
        ),
        pytest.param(
            POLICY + "    konfig: {name: x}\n    env:\n    - {name: A, values: x}\n  gds: {whatever: 1}\n",
            [
                f"f: ClusterPolicy p: warning: spec.{place}: unknown field, which the API server drops{hint}"
                for place, hint in (
                    ("devicePlugin.konfig (line 7)", '; did you mean "config"?'),
                    ("devicePlugin.env[0].values (line 9)", '; did you mean "value"?'),
                    ("gds.whatever (line 10)", ""),
                )
            ],
            id="fields that no policy has",
        ),
        pytest.param(
            "kind: ConfigMap\ndata: {a: '', b: 3}\nbinaryData: {c: AA==}\n",
            [
                "f: a: line 2: it is empty; to share nothing, write `version: v1`",
                "f: b: line 2: must be a text; put `|` behind the colon and the configuration below it, indented",
                "f: c: line 3: it holds binary data; save the text as UTF-8 and create the ConfigMap again",
            ],
            id="keys that are no texts",
        ),
        pytest.param(
            "kind: ConfigMap\ndata: []\n",
            ["f: ConfigMap: data (line 2): must hold keys, each with a configuration as its text"],
            id="no keys",
        ),
        pytest.param(
            "kind: List\nitems:\n- {kind: ConfigMap, metadata: {name: m}, data: {k: 'versio: v1'}}\n",
            ['f: k: versio (line 3): unknown key; did you mean "version"?'],
            id="list, and a text without lines of its own",
        ),
        pytest.param(
            "kind: Pod\nmetadata: {name: x}\n",
            ["f: Pod x: warning: neither a ConfigMap nor a ClusterPolicy: was not looked at"],
            id="another kind",
        ),
        pytest.param("a: [", ['f: line 1: cannot be read as YAML: the "[" of this line is never closed'], id="no YAML"),
    ],
)
def test_check_text(text: str, expected: list[str]) -> None:
    """Each problem with its place in the file, and what to write."""
    assert lines_of(text) == expected


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("0[0-37]*/*.yaml")), ids=lambda file: file.name)
def test_examples(file: Path) -> None:
    """Every example is fine but those that are there to be refused."""
    assert not any(item.problems for item in validation.check_text(file.read_text()))


def test_fit() -> None:
    """What the text may say and the hardware cannot do."""
    gpu = GPU(index=0, uuid="GPU-0", product="Tesla T4", mig_capable=False)
    (checked,) = validation.check_text(
        SHARING.replace("replicas: 4", "replicas: 4, devices: [3], rename: nvidia.com/few")
    )
    fitted = validation.check_fit(checked, Inventory(gpus=(gpu,)))

    assert not checked.problems
    assert [problem.path for problem in fitted.problems] == ["sharing.timeSlicing.resources[0].devices[0]"]


def test_fit_of_mps() -> None:
    """Where MPS has its directory is told to the agents by the policy, and need not stand in the text."""
    (checked,) = validation.check_text(MPS)
    gpu = GPU(index=0, uuid="GPU-0", product="Tesla T4", memory_mib=15360, mig_capable=False)
    modern = replace(gpu, compute_capability=ComputeCapability(major=7, minor=5))

    assert validation.check_fit(checked, Inventory(gpus=(modern,))).problems == ()
    old = replace(gpu, compute_capability=ComputeCapability(major=6, minor=1))
    assert "too old for MPS" in str(validation.check_fit(checked, Inventory(gpus=(old,))).problems)


def test_document() -> None:
    """The same for programs."""
    body = views.build_document({"f": validation.check_text(CONFIG_MAP)})

    assert not body["valid"]
    assert body["files"][0]["checked"][0]["problems"][0]["line"] == 10
    assert documents.build_text(body, "yaml").startswith("valid: false\nfiles:\n- file: f\n")


def test_many_keys() -> None:
    """The limit is that of one configuration, not of the ConfigMap that holds many."""
    keys = "".join(f"  key-{number}: |\n    version: v1\n    {'#' * 600}\n" for number in range(200))
    checked = validation.check_text(f"kind: ConfigMap\nmetadata: {{name: m}}\ndata:\n{keys}")

    assert (len(checked), [item for item in checked if item.problems]) == (200, [])
