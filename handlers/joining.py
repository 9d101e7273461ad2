"""A broker that joins a cluster lets clients in before its controller has told it of the cluster (see ``broker.server``)."""

from __future__ import annotations

import trio

from .call import Call

_SECONDS = 5.0


async def wait_known(call: Call) -> None:
    """Return once this broker knows the cluster, or after a while; so that a client gets a useful answer and need not retry."""
    metadata = call.broker.metadata
    if not metadata.is_told:
        await call.flush()
        with trio.move_on_after(_SECONDS):
            await metadata.wait_known()
