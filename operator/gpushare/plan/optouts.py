"""Components that a person keeps away from a node by `gpu.deploy.<component>=false`. Called by `nodes`.

Nobody here removes such a label. But NVIDIA's operator, which may label the same nodes, removes all of them when node feature
discovery blinks, and writes `true` afterwards. So opt-outs are remembered in an annotation of the Node, and put back then.
Who removes the label while the node is well has changed their mind.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from gpushare import names
from gpushare.plan.discovery import Sight
from gpushare.plan.snapshot import Node

_OUT: Final = "false"


def remembered(node: Node, sight: Sight, components: Iterable[str]) -> frozenset[str]:
    """Components that are opted out of on this node, whether or not their labels still say so.

    Args:
        node: with its labels, and what is remembered so far.
        sight: whether its labels were lost, and everybody's with them.
        components: those that are labelled.
    """
    is_blinking = sight.missing or sight.returned or not sight.present
    # Where `gpu.present` is ours nobody else labels the node, and who removed the label meant it.
    may_be_wiped = is_blinking and names.LABEL_PRESENT not in node.owned
    if may_be_wiped or node.labels.get(names.LABEL_DEPLOY_OPERANDS) == _OUT:
        return node.opted_out | {component for component in components if _is_told(node, component)}
    return frozenset(component for component in components if _is_told(node, component))


def _is_told(node: Node, component: str) -> bool:
    key = names.LABEL_DEPLOY_PREFIX + component
    # Ours is one that was put back, or stands in for `gpu.deploy.operands`.
    return node.labels.get(key) == _OUT and (key not in node.owned or component in node.opted_out)
