"""Every action by its address."""

from __future__ import annotations

from .actions import Action
from .asking import Kafka
from .source import Source
from .topic_actions import AddPartitions, ConfigureTopic, CreateTopic, DeleteRecords, DeleteTopic


def all_actions(kafka: Kafka, source: Source) -> dict[str, Action]:
    """Those of a console that may write. A topic is in the path, a group in the query: its id may have any characters."""

    def server() -> str:
        return source.bootstrap_servers

    return {
        "/create-topic": CreateTopic(kafka, server),
        "/topics/{topic}/add-partitions": AddPartitions(kafka, server),
        "/topics/{topic}/configure": ConfigureTopic(kafka, server),
        "/topics/{topic}/delete-records": DeleteRecords(kafka, server),
        "/topics/{topic}/delete": DeleteTopic(kafka, server),
    }
