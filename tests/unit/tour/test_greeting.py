"""What a sandbox says first."""

from pathlib import Path

from gpushare.sandbox.app import Options, Sandbox

NODES = """\
nodes:
- {name: none}
- {name: one, gpus: [{model: Tesla T4, count: 1}]}
- {name: three, gpus: [{model: Tesla T4}, {model: A100-SXM4-40GB, count: 2}]}
- {name: fourth}
- {name: fifth}
- {name: sixth}
"""


def test_nodes(tmp_path: Path) -> None:
    """Some nodes by name, with their GPUs; and how many more there are."""
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(NODES)

    sandbox = Sandbox(Options(scenario=scenario))
    sandbox.kubeconfig.parent.rmdir()  # the folder of one that never starts

    first, *_ = sandbox.greeting().splitlines()
    assert first == "The cluster is ready: none, one (1 GPU), three (3 GPUs), fourth, fifth, and 1 more."
