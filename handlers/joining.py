"""A wait for the cluster's metadata at a broker that has just joined (see ``broker.server``).

Such a broker lets clients in before its controller has sent it the metadata.
"""

from __future__ import annotations

import trio

from ..base.errors import ErrorCode, KafkaError
from .call import Call

_SECONDS = 5.0


async def wait_initialized(call: Call) -> None:
    """Return once this broker knows the cluster, or after a while; so that a client gets a useful answer and need not retry."""
    metadata = call.broker.metadata
    if not metadata.is_initialized:
        await call.flush()
        with trio.move_on_after(_SECONDS):
            await metadata.wait_initialized()


async def check_known(call: Call, otherwise: ErrorCode = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) -> None:
    """The same for a coordinator, which a broker may be before it is told which topics there are. Raises
    KafkaError with ``otherwise``, at which clients try again: for consumers it is final that what they commit is unknown.
    """
    await wait_initialized(call)
    if not call.broker.metadata.is_initialized:
        raise KafkaError(otherwise, "this broker does not know the topics yet")
