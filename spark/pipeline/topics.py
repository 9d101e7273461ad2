"""Checks that the topics of a pipeline exist, before Spark is started."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..failures import JobError
from ..kafka_admin import admin_client, check_reachable
from .declaration import Pipeline, PipelineSink, PipelineSource

_CREATES = "auto.create.topics.enable"


@dataclass(frozen=True)
class _Cluster:
    """The topics of a cluster, and whether its brokers create missing ones; True if that is unknown."""

    topics: frozenset[str]
    creates: bool


def check_topics(pipeline: Pipeline) -> None:
    """Raises JobError if brokers do not answer or topics are missing."""
    known: dict[str, _Cluster] = {}

    def cluster(table: PipelineSource | PipelineSink, place: str) -> tuple[str, _Cluster]:
        servers = pipeline.brokers(table)
        if servers not in known:
            known[servers] = _asked(servers, place)
        return servers, known[servers]

    for name, source in pipeline.sources.items():
        servers, found = cluster(source, f"sources.{name}")
        missing = [topic for topic in source.topics if topic not in found.topics]
        if missing:
            raise JobError(f"sources.{name}: {servers} has no topic {', '.join(missing)}")
        if source.pattern is not None and not any(re.fullmatch(source.pattern, topic) for topic in found.topics):
            raise JobError(f"sources.{name}: {servers} has no topic whose name matches {source.pattern}")
    for name, sink in pipeline.sinks.items():
        if sink.topic is None:
            continue
        servers, found = cluster(sink, f"sinks.{name}")
        if sink.topic not in found.topics and not found.creates:
            raise JobError(
                f"sinks.{name}: {servers} has no topic {sink.topic}, and does not create topics by itself: create it"
            )


def _asked(servers: str, place: str) -> _Cluster:
    try:
        check_reachable(servers)
        with admin_client(servers) as admin:
            return _Cluster(frozenset(admin.list_topics()), _creates_topics(admin))
    except JobError as error:
        raise JobError(f"{place}: {error}") from None


def _creates_topics(admin: Any) -> bool:
    from kafka.admin import ConfigResource, ConfigResourceType
    from kafka.errors import KafkaError

    broker = str(admin.describe_cluster()["brokers"][0]["broker_id"])
    try:
        described = admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, broker)], config_filter="all")
        return bool(described["broker"][broker][_CREATES]["value"] != "false")
    except (KafkaError, KeyError):  # a client may not be allowed to see it
        return True
