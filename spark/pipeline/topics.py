"""Whether the topics that a pipeline reads are there: asked of the brokers before Spark is started."""

from __future__ import annotations

import re

from ..query import JobError
from .declaration import Pipeline


def check_topics(pipeline: Pipeline) -> None:
    """Raises JobError for brokers that do not answer and topics that are missing."""
    known: dict[str, set[str]] = {}
    for name, source in pipeline.sources.items():
        servers = source.bootstrap_servers or pipeline.bootstrap_servers
        if servers not in known:
            known[servers] = _topics(servers, f"sources.{name}")
        missing = [topic for topic in source.topics if topic not in known[servers]]
        if missing:
            raise JobError(f"sources.{name}: {servers} has no topic {', '.join(missing)}")
        if source.pattern is not None and not any(re.fullmatch(source.pattern, topic) for topic in known[servers]):
            raise JobError(f"sources.{name}: {servers} has no topic whose name matches {source.pattern}")


def _topics(servers: str, place: str) -> set[str]:
    import logging

    from kafka import KafkaAdminClient
    from kafka.errors import KafkaError

    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    try:
        admin = KafkaAdminClient(bootstrap_servers=servers.split(","), request_timeout_ms=10_000)
        try:
            return set(admin.list_topics())
        finally:
            admin.close()
    except KafkaError as error:
        raise JobError(f"{place}: no broker answers at {servers} ({type(error).__name__})") from None
