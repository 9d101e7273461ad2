"""Waiting until brokers in processes of their own know each other, and telling what each one knows when they don't."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from ottla.compat_tests.brokers import BrokerProcess
from ottla.compat_tests.clients.security import Security
from ottla.compat_tests.wire_client import ClusterView, cluster_view

JOIN_TIMEOUT_S = 120.0
_TAIL = 2000
"""Characters of each broker's log that an error shows."""


def wait_until_joined(
    brokers: Mapping[int, BrokerProcess], is_whole: Callable[[ClusterView], bool], security: Security | None
) -> None:
    """Return once what each of these brokers, by id, tells of the cluster is what it should be.

    Raises AssertionError after JOIN_TIMEOUT_S, or as soon as one has ended: a process listens before its start is done.
    """
    deadline = time.monotonic() + JOIN_TIMEOUT_S
    while True:
        views = {number: cluster_view(broker.address, security=security) for number, broker in brokers.items()}
        if all(view is not None and is_whole(view) for view in views.values()):
            return
        if time.monotonic() > deadline or not all(broker.is_running for broker in brokers.values()):
            logs = "".join(f"\n--- broker {number}\n{each.log()[-_TAIL:]}" for number, each in brokers.items())
            raise AssertionError(f"the brokers don't come together; each tells of {views}{logs}")
        time.sleep(0.02)
