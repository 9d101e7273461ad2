"""A member of a group that reads nothing and never leaves.

It is a module of its own, imported by its name in the package: the process that runs it can't import a test's module,
whose name pytest derives from that of the folder the checkout lies in.
"""

from __future__ import annotations

import threading
from multiprocessing.synchronize import Event

from ottla.compat_tests.clients import model
from ottla.compat_tests.clients.registry import CLIENTS


def join_and_hang(name: str, bootstrap: str, settings: model.ConsumerSettings, topic: str, ready: Event) -> None:
    """Join, say that there are partitions to read, and wait to be killed."""
    consumer = CLIENTS[name].connect(bootstrap).consumer(settings)
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(0.2)
    ready.set()
    threading.Event().wait()
