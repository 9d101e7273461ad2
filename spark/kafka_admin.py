"""A job's own requests to brokers: a check of the connection, and kafka-python's admin client.

Errors are one line.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..base.addresses import DEFAULT_PORT, split_host_port
from .bootstrap_servers import kafka_python
from .query import JobError

if TYPE_CHECKING:
    from kafka import KafkaAdminClient


@contextmanager
def admin_client(bootstrap_servers: str) -> Iterator[KafkaAdminClient]:
    """A context with an admin client. Raises JobError when no broker answers, and when a request is refused."""
    from kafka import KafkaAdminClient
    from kafka.errors import KafkaError

    try:
        admin = KafkaAdminClient(**kafka_python(bootstrap_servers), request_timeout_ms=20_000)
    except KafkaError as error:
        raise JobError(f"no broker answers at {bootstrap_servers} ({type(error).__name__})") from None
    try:
        yield admin
    except KafkaError as error:
        raise JobError(f"{bootstrap_servers}: {error}") from error
    finally:
        admin.close()


def check_reachable(bootstrap_servers: str, timeout_s: float = 2.0) -> None:
    """Raise JobError unless a server accepts a connection; clients would try for half a minute, Spark for three minutes."""
    failures = []
    for server in bootstrap_servers.split(","):
        try:
            socket.create_connection(split_host_port(server.strip(), DEFAULT_PORT), timeout_s).close()
            return
        except (OSError, ValueError) as error:
            failures.append(f"{server.strip()}: {error}")
    raise JobError(f"no broker answers at {'; '.join(failures)}")
