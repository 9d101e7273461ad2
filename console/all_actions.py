"""The table of the console's actions, by address."""

from __future__ import annotations

from ..view.own.broker_view import BrokerView
from ..view.source import ViewSource
from .actions import Action
from .broker_actions import AbortTransaction, Disconnect, EndSession
from .connect_actions import connect_actions
from .group_actions import DeleteGroup, ResetOffsets
from .kafka_requests import KafkaRequests
from .topic_actions import AddPartitions, ConfigureTopic, CreateTopic, DeleteRecords, DeleteTopic
from .visitor_rights import VisitorRights


def all_actions(
    kafka: KafkaRequests, source: ViewSource, inside: BrokerView | None, rights: VisitorRights | None
) -> dict[str, Action]:
    """Those of a console that may write; ``inside`` where it is a broker's own.

    A topic is in the path, a group in the query: its id may have any characters.
    """

    def server() -> str:
        return source.bootstrap_servers

    actions: dict[str, Action] = {
        "/create-topic": CreateTopic(kafka, server),
        "/topics/{topic}/add-partitions": AddPartitions(kafka, server),
        "/topics/{topic}/configure": ConfigureTopic(kafka, server),
        "/topics/{topic}/delete-records": DeleteRecords(kafka, server),
        "/topics/{topic}/delete": DeleteTopic(kafka, server),
        "/reset-offsets": ResetOffsets(kafka, server),
        "/delete-group": DeleteGroup(kafka, server),
        "/abort-transaction": AbortTransaction(kafka, server),
    }
    if inside is not None:
        actions["/disconnect"] = Disconnect(inside, rights)
        actions["/end-session"] = EndSession(inside, rights)
    return actions | connect_actions(source, rights)
