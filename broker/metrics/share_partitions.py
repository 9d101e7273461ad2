"""The metrics of share partitions, share sessions and the share coordinator."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from ...handlers.services import Services
from ...share_coordinator.settings import TOPIC
from ...share_partitions.acknowledgement import ACCEPT, REJECT, RELEASE, RENEW
from .families import sharing
from .samples import simple, single

_ACK_TYPES = {ACCEPT: "Accept", RELEASE: "Release", REJECT: "Reject", RENEW: "Renew"}


def share_metrics(services: Services | None) -> Iterator[Metric]:
    """In the order of ``families.sharing``; ``services`` is None before the start."""
    sessions = None if services is None else services.share_sessions
    yield single(sharing.SHARE_SESSIONS, 0 if sessions is None else len(sessions))
    yield single(sharing.SHARE_SESSION_PARTITIONS, 0 if sessions is None else sessions.partition_count)
    yield single(sharing.SHARE_SESSION_EVICTIONS, 0 if sessions is None else sessions.evictions)
    found = []
    if services is not None:
        for entry in services.share_partitions.entries:
            if entry.led is not None:
                labels = entry.key.group_id, entry.partition.topic, str(entry.key.partition)
                found.append((labels, entry.led))
    yield simple(sharing.IN_FLIGHT_MESSAGES, [(labels, led.state.in_flight) for labels, led in found])
    yield simple(sharing.IN_FLIGHT_BATCHES, [(labels, len(led.state.batches)) for labels, led in found])
    yield simple(sharing.LOCK_TIMEOUTS, [(labels, led.lock_timeouts) for labels, led in found])
    yield simple(sharing.REDELIVERED, [(labels, led.state.redelivered) for labels, led in found])
    yield simple(sharing.ARCHIVED, [(labels, led.state.archived) for labels, led in found])
    counts = {} if services is None else services.share_partitions.acknowledged
    yield simple(sharing.RECORD_ACKNOWLEDGEMENTS, [((name,), counts.get(kind, 0)) for kind, name in _ACK_TYPES.items()])
    coordinator = None if services is None else services.share_coordinator
    yield single(sharing.STATE_WRITES, 0 if coordinator is None else coordinator.writes)
    pruned = {} if coordinator is None else coordinator.last_pruned
    yield simple(sharing.LAST_PRUNED_OFFSET, [((TOPIC, str(number)), offset) for number, offset in pruned.items()])
