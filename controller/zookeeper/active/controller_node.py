"""The znodes ``/controller`` and ``/controller_epoch``: the id of the controller, and the number of its election.

A broker becomes the controller by one transaction that makes the ephemeral ``/controller`` and raises the epoch. From then
on its writes check the epoch node's version, so a controller that was replaced can do no harm. A block of producer ids is
fenced by the version of its own node instead: whoever takes it, no other broker gets it.
"""

from __future__ import annotations

from ....base.seams import Clock
from ..nodes import znodes
from ..state.context import ControllerContext
from ..store.cluster_store import (
    BadVersionError,
    Check,
    ClusterStore,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    Set,
    Stat,
    StoreError,
    Watch,
    create,
)


async def stand_for_election(
    store: ClusterStore, broker_id: int, clock: Clock, watch: Watch
) -> ControllerContext | None:
    """Become the controller: a context that knows the new epoch, and nothing else yet; None when another broker is.

    ``watch`` hears when ``/controller`` changes, either way. Raises StoreError.
    """
    while True:
        stat = await store.exists(znodes.CONTROLLER, watch)
        if stat is None:
            context = await _claim(store, broker_id, clock)
            if context is not None:
                await store.exists(znodes.CONTROLLER, watch)
                return context
        elif stat.ephemeral_owner == store.session_id:
            await withdraw(store)
        else:
            return None


async def is_controller(store: ClusterStore, watch: Watch) -> bool:
    """Whether ``/controller`` is still this session's; if so, ``watch`` hears of its next change. Raises StoreError."""
    try:
        node = await store.get(znodes.CONTROLLER, watch)
    except NoNodeError:
        return False
    return node.stat.ephemeral_owner == store.session_id


async def withdraw(store: ClusterStore) -> None:
    """Remove this session's own node, if there is one: it belongs to an epoch that has ended. Raises StoreError.

    The version of ``/controller`` would not tell it from another broker's, so the epoch is checked, which that broker would
    have raised (KafkaZkClient.deleteController).
    """
    epoch = await store.exists(znodes.CONTROLLER_EPOCH)
    stat = await store.exists(znodes.CONTROLLER)
    if epoch is None or stat is None or stat.ephemeral_owner != store.session_id:
        return
    try:
        await store.multi([Check(znodes.CONTROLLER_EPOCH, epoch.version), Delete(znodes.CONTROLLER)])
    except (NoNodeError, BadVersionError):
        pass


async def _claim(store: ClusterStore, broker_id: int, clock: Clock) -> ControllerContext | None:
    """Make ``/controller`` and raise the epoch; None when another broker was faster, or the epoch is to be read again."""
    try:
        node = await store.get(znodes.CONTROLLER_EPOCH)
    except NoNodeError:
        try:
            await create(store, znodes.CONTROLLER_EPOCH, b"0")
        except NodeExistsError:
            pass
        return None
    try:
        epoch = int(node.data) + 1
    except ValueError:
        raise StoreError(znodes.CONTROLLER_EPOCH, f"{node.data!r} is not an epoch") from None
    try:
        _, stat = await store.multi(
            [
                Create(znodes.CONTROLLER, znodes.encode_controller(broker_id, clock.now_ms()), ephemeral=True),
                Set(znodes.CONTROLLER_EPOCH, str(epoch).encode(), node.stat.version),
            ]
        )
    except (NodeExistsError, BadVersionError):
        return None
    assert isinstance(stat, Stat)
    return ControllerContext(broker_id, epoch, stat.version)
