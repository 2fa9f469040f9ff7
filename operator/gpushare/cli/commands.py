"""The commands that people type. Called by `main` when the command is not one of the node's processes."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TextIO

import click

from gpushare import __version__
from gpushare.cli.main import PROCESSES

COMMANDS = {
    "allocate": ("gpushare.cli.allocate", "which GPUs a request would get on a node, and why"),
    "explain": ("gpushare.cli.explain", "why a pod waits or got its GPU; why a node runs what it runs"),
    "inspect": ("gpushare.cli.inspect", "who holds which part of which GPU, as `kubectl inspect cgpu` shows it"),
    "plan": ("gpushare.cli.plan", "what a change would make of every node: configuration, resources, labels, pods"),
    "sandbox": ("gpushare.cli.sandbox", "a simulated GPU cluster in your terminal, for real kubectl"),
    "top": ("gpushare.cli.top", "each GPU: its memory, its health, and who holds what of it"),
    "topology": ("gpushare.cli.topology", "how the GPUs of a node are connected, and how close that makes them"),
    "validate": ("gpushare.cli.validate", "what is wrong in sharing configurations, ConfigMaps and policies"),
}
SUMMARIES = {name: summary for name, (_, summary) in COMMANDS.items()} | {
    "agent": "the node agent: discovers GPUs, serves them to the kubelet (flags of nvidia-device-plugin)",
    "labels": "only the node labels, once or for ever (flags of gpu-feature-discovery)",
    "mps": "the MPS control daemons of the node (flags of NVIDIA's mps-control-daemon)",
    "cleanup": "before an uninstall: removes what the controller has made from nodes and namespace",
    "crds": "before an upgrade: brings the CRDs up to this version",
    "scheduler": "the scheduler of fractions: extender of kube-scheduler, and admission webhook",
    "controller": "the controller: ClusterPolicy, ConfigMaps and Nodes to what nodes run",
}


class _Commands(click.Group):
    """Loads a command's module only when it is chosen, so that `--help` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted(SUMMARIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name in PROCESSES:
            # Only for the list in `--help`: `main` has dispatched these before click was loaded.
            return click.Command(cmd_name, short_help=SUMMARIES[cmd_name])
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=True)
@click.version_option(__version__, prog_name="gpushare")
def _gpushare() -> None:
    """Share NVIDIA GPUs on Kubernetes."""


def run(argv: Sequence[str], *, stderr: TextIO) -> int:
    """Runs one command. Exit codes: 0 fine, 1 failed, 2 wrong usage; messages of failures go to `stderr`."""
    try:
        result = _gpushare.main(args=list(argv), prog_name="gpushare", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message())
        return 0
    except click.ClickException as error:
        error.show(stderr)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    return result if isinstance(result, int) else 0
