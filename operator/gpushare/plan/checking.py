"""What of a policy cannot be made into objects, found before anything is rendered. Called by `components` and `validation`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from gpushare.api import agent_flags
from gpushare.api.clusterpolicy import ClusterPolicy, DaemonSets
from gpushare.errors import Problem, UsageError
from gpushare.plan.environment import RESERVED, build_environment, read_flags

_ARGS: Final = "spec.devicePlugin.args"
_ENV: Final = "spec.devicePlugin.env"
_MAX_UNAVAILABLE: Final = re.compile(r"0*[1-9]\d*|0*(?:[1-9]\d?|100)%")


def check(policy: ClusterPolicy) -> tuple[Problem, ...]:
    """Every problem that is not one of the image."""
    env = build_environment(policy)
    return (*_check_update(policy.daemonsets), *_check_command(policy.device_plugin.args, env))


def _check_update(common: DaemonSets) -> list[Problem]:
    limit = common.rolling_update.max_unavailable
    if not limit or common.update_strategy == "OnDelete" or _MAX_UNAVAILABLE.fullmatch(limit):
        return []
    message = f'"{limit}" is neither a number above 0 nor a percentage up to 100; write "1" or "25%"'
    return [Problem(path="spec.daemonsets.rollingUpdate.maxUnavailable", message=message)]


def _check_command(args: Sequence[str], env: Mapping[str, str]) -> list[Problem]:
    """What every agent would end on, or lose its way by: better told here than by a node without GPUs."""
    if shell := _check_args(args):
        return shell
    problems: list[Problem] = []
    for path, argv, environ in ((_ARGS, args, {}), (_ENV, (), env)):
        try:
            said = read_flags(argv, environ)
        except UsageError as error:
            problems.append(Problem(path=path, message=f"every agent would end on it: {error}"))
            continue
        if argv:
            own = [flag for flag in agent_flags.FLAGS if flag.key in said and RESERVED.keys() & set(flag.variables)]
            problems += [
                Problem(path=path, message=f"--{flag.names[0]}: remove it, since {RESERVED[flag.variables[0]]}")
                for flag in own
            ]
    return problems


def _check_args(args: Sequence[str]) -> list[Problem]:
    """Flags and their values only: what NVIDIA's operator puts here is a line for a shell, and there is none."""
    after_flag = False
    for index, arg in enumerate(args):
        is_flag = arg.startswith("-")
        if not (is_flag or after_flag) or (is_flag and any(char.isspace() for char in arg)):
            message = (
                f'"{arg}" is no flag; this is not a line for a shell, write flags such as "--pass-device-specs=true"'
            )
            return [Problem(path=f"{_ARGS}[{index}]", message=message)]
        after_flag = is_flag and "=" not in arg
    return []
