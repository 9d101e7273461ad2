"""Changes of topics, charged to the quota of the client that requests them (KIP-599)."""

from __future__ import annotations

from ..controller.new_topics import Charge
from .call import NodeCall


def charge(call: NodeCall, first_strict_version: int) -> Charge | None:
    """A function that charges partitions that are about to be created or deleted; None where the client has no quota.

    From ``first_strict_version`` of the request on, it raises KafkaError THROTTLING_QUOTA_EXCEEDED where the quota is exhausted.
    """
    if call.cost is None:
        return None
    mutations = call.cost.mutations(is_strict=call.version >= first_strict_version)
    return None if mutations is None else mutations.charge


def permissive_charge(call: NodeCall) -> Charge | None:
    """The same for what is made because a client named it: it is counted, and never refused."""
    if call.cost is None:
        return None
    mutations = call.cost.mutations(is_strict=False, throttles=False)
    return None if mutations is None else mutations.charge
