"""The metrics of clients' quotas: their use, and throttle times.

There are samples for the quotas that clients use, by the user and client id that share each. A client can make up client
ids, so there are at most ``_MOST`` samples of each kind: those with the longest throttle times.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import trio
from prometheus_client.core import Metric

from ...handlers.node_services import NodeServices
from ...security.client_quotas import QuotasOfKind, S
from ...security.entities import order_of
from .families import traffic
from .samples import Labels, simple

_MOST = 1_000


def client_quota_metrics(services: NodeServices | None) -> Iterator[Metric]:
    now_ms = int(trio.current_time() * 1000)
    quotas = None if services is None else services.client_quotas
    produce, fetch = [], []
    request, mutations = [], []
    if quotas is not None:
        produce, fetch = _used(quotas.produce, "Produce", now_ms), _used(quotas.fetch, "Fetch", now_ms)
        request = _used(quotas.request, "Request", now_ms)
        mutations = _used(quotas.mutations, "ControllerMutation", now_ms)
    bytes_used = [*produce, *fetch]
    yield simple(traffic.CLIENT_BYTE_RATE, [(labels, used.rate.per_second(now_ms)) for labels, used in bytes_used])
    yield simple(traffic.CLIENT_REQUEST_TIME, [(labels, used.rate.per_second(now_ms)) for labels, used in request])
    yield simple(traffic.CLIENT_MUTATION_RATE, [(labels, used.rate.per_second(now_ms)) for labels, used in mutations])
    yield simple(traffic.CLIENT_TOKENS, [(labels, used.tokens(now_ms)) for labels, used in mutations])
    held_up = [(labels, used.average_throttle_ms(now_ms)) for labels, used in [*bytes_used, *request, *mutations]]
    yield simple(traffic.CLIENT_THROTTLE_TIME, held_up)


def _used(quotas: QuotasOfKind[S], resource: str, now_ms: int) -> list[tuple[Labels, S]]:
    """The quotas in use, with their labels; at most ``_MOST``."""
    most = heapq.nlargest(_MOST, quotas.in_use(), key=lambda used: used.average_throttle_ms(now_ms))
    return [((resource, *order_of(used.sharing.user), *order_of(used.sharing.client_id)), used) for used in most]
