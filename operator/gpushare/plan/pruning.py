"""What the operator made and no longer wants. Called by `build`."""

from __future__ import annotations

from collections.abc import Collection

from gpushare.domain.manifests import ObjectKey
from gpushare.plan import components
from gpushare.plan.snapshot import LiveObject


def build_prune(
    objects: Collection[LiveObject], *, wanted: Collection[ObjectKey], held: Collection[str]
) -> tuple[LiveObject, ...]:
    """Objects to delete, those that use others first.

    Only what carries our own label goes: an object of somebody else with the same name stays, unlike in NVIDIA's operator.

    Args:
        objects: everything that exists.
        wanted: what is going to be applied.
        held: components that stay as they are, though nothing of them is applied.
    """
    gone = [
        item
        for item in objects
        # The controller's own Deployment and account carry our label too, with a component that no plan has.
        if item.managed and item.component in components.STATES.keys() - set(held) and item.key not in wanted
    ]
    # Workloads before the accounts and rights that they run with.
    return tuple(
        sorted(gone, key=lambda item: (item.rollout is None, item.key.kind.plural, item.key.namespace, item.key.name))
    )


def find_foreign(
    objects: Collection[LiveObject], *, keys: Collection[ObjectKey], owner_uid: str
) -> tuple[LiveObject, ...]:
    """Objects with our names that another controller is in charge of.

    What an earlier operator left behind for the same policy, or what nobody controls, is taken over.
    """
    return tuple(
        sorted(
            (
                item
                for item in objects
                if item.key in keys and not item.managed and item.controller not in {"", owner_uid}
            ),
            key=lambda item: str(item.key),
        )
    )
