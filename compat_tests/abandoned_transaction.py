"""A client that begins a transaction and never ends it.

It is a module of its own, imported by its name in the package: the process that runs it can't import a test's module,
whose name pytest derives from that of the folder the checkout lies in.
"""

from __future__ import annotations

import threading
from multiprocessing.synchronize import Event

from ottla.compat_tests.clients import model
from ottla.compat_tests.clients.registry import CLIENTS


def write_and_hang(name: str, bootstrap: str, ready: Event) -> None:
    """Write one record to topic ``log`` as transactional id ``dies``, say that it is written, and wait to be killed."""
    producer = CLIENTS[name].connect(bootstrap).producer(model.ProducerSettings(transactional_id="dies"))
    producer.begin()
    producer.send("log", b"lost", partition=0)
    producer.flush()
    ready.set()
    threading.Event().wait()
