"""Actions on a client: abort a hanging transaction in a partition (KIP-664), close a connection, end a member's session."""

from __future__ import annotations

from urllib.parse import quote

from ..view.own.broker_view import BrokerView, NotFoundError
from ..view.rows import ConnectionRow, MemberRow
from ..wire.api_keys import ApiKey
from ..wire.messages.describe_producers import DescribeProducersRequest, ProducerState, TopicRequest
from ..wire.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from . import action_commands
from .actions import ActionPlan, ActionResult, Given, KafkaAction, PlainAction, number
from .kafka_requests import LeaderTarget, check
from .questions import WrongQuestionError
from .topic_actions import topic_address
from .visitor_rights import VisitorRights


class AbortTransaction(KafkaAction):
    """An abort marker for one partition, in the place of a coordinator that does not write it."""

    title, here = "Abort a transaction", "Topics"
    api = ApiKey.WRITE_TXN_MARKERS

    async def plan(self, given: Given) -> ActionPlan | None:
        topic, partition = given.get("topic", ""), _partition(given)
        found = await self._open(given)
        start = found.current_txn_start_offset
        return ActionPlan(
            f"The transaction of producer {found.producer_id} in {topic}-{partition} is aborted: its records "
            f"there, from offset {start} on, are not read by consumers of committed records.",
            "Abort transaction",
            action_commands.abort_transaction(self._server(), topic, partition, start),
            warnings=(
                "Only for a hanging transaction: its coordinator does not learn of this.",
                "The producer's records elsewhere are not changed.",
            ),
            columns=("Producer", "Epoch", "Coordinator's epoch", "First offset"),
            rows=((found.producer_id, found.producer_epoch, found.coordinator_epoch, start),),
            hidden={"start": str(start)},
        )

    async def carry_out(self, given: Given) -> ActionResult:
        topic, partition = given.get("topic", ""), _partition(given)
        found = await self._open(given)
        if str(found.current_txn_start_offset) != given.get("start"):
            raise WrongQuestionError("Nothing was done: the transaction that was shown has ended meanwhile.")
        marker = WritableTxnMarker(
            producer_id=found.producer_id,
            producer_epoch=found.producer_epoch,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
            # One that hangs before its first end has no coordinator's epoch yet; Kafka's tool sends the lowest there is, too.
            coordinator_epoch=max(0, found.coordinator_epoch),
        )
        response = await self._kafka.ask(WriteTxnMarkersRequest(markers=[marker]), LeaderTarget(topic, partition))
        for answered in response.markers[0].topics:
            for result in answered.partitions:
                check(result.error_code)
        where = f"{topic}-{partition}, open from offset {found.current_txn_start_offset} on"
        what = f"The transaction of producer {found.producer_id} in {where}, was aborted."
        return ActionResult(what, topic_address(topic), topic)

    async def _open(self, given: Given) -> ProducerState:
        """The producer, whose transaction is open. Raises NotFoundError, KafkaError."""
        topic, partition = given.get("topic", ""), _partition(given)
        producer_id = number(given, "producer", "a producer id")
        request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[partition])])
        response = await self._kafka.ask(request, LeaderTarget(topic, partition))
        (found,) = response.topics[0].partitions
        check(found.error_code, found.error_message)
        for state in found.active_producers:
            if state.producer_id == producer_id and state.current_txn_start_offset >= 0:
                producer: ProducerState = state
                return producer
        raise NotFoundError(f"There is no open transaction of producer {producer_id} in {topic}-{partition}.")


def _partition(given: Given) -> int:
    partition = number(given, "partition", "a partition", 0, (1 << 31) - 1)
    if partition is None:
        raise WrongQuestionError("Of which partition was not said.")
    return partition


class Disconnect(PlainAction):
    """The end of a client's connection. No request of Kafka does that: it is for those who could take away its rights."""

    title, here = "Disconnect a client", "Connections"
    api = ApiKey.CREATE_ACLS

    def __init__(self, view: BrokerView, rights: VisitorRights | None) -> None:
        self._view = view
        self._rights = rights

    async def plan(self, given: Given) -> ActionPlan | None:
        self._check()
        row, _ = await self._find(given)
        return ActionPlan(
            f"The connection from {row.peer} is closed, with its pending requests.",
            "Disconnect",
            None,
            warnings=("Its client will connect again, unless it is stopped or loses its right to.",),
            columns=("Client", "Client id", "Principal", "Listener"),
            rows=((row.peer, row.client_id, row.principal, row.listener),),
        )

    async def carry_out(self, given: Given) -> ActionResult:
        self._check()
        row, others = await self._find(given)
        if not self._view.disconnect(row.peer):
            raise NotFoundError(f"There is no connection from {row.peer}.")
        left = f"{others} {'is' if others == 1 else 'are'} left"
        what = f"1 connection was closed: that of {row.client_id} from {row.peer}. {left}."
        return ActionResult(what, "/connections", "Connections")

    async def _find(self, given: Given) -> tuple[ConnectionRow, int]:
        """The connection, and how many others there are. Raises NotFoundError."""
        rows = await self._view.connections()
        for row in rows:
            if row.peer == given.get("peer"):
                return row, len(rows) - 1
        raise NotFoundError(f"There is no connection from {given.get('peer', '')}.")

    def _check(self) -> None:
        if self._rights is not None:
            self._rights.check(self.api)


class EndSession(PlainAction):
    """The end of a member's session in a group that this broker coordinates, as if nothing had been heard of it for too long.

    No request of Kafka does that. The right is that of LeaveGroup, by which an administrator removes static members.
    """

    title, here = "End a session", "Groups"
    api = ApiKey.LEAVE_GROUP

    def __init__(self, view: BrokerView, rights: VisitorRights | None) -> None:
        self._view = view
        self._rights = rights

    async def plan(self, given: Given) -> ActionPlan | None:
        group, row = await self._find(given)
        return ActionPlan(
            f"The session of {row.member_id} in the group {group} ends, and its partitions go to the other members.",
            "End session",
            None,
            warnings=("A client that still runs learns this from its next request, and joins again.",),
            columns=("Member", "Instance", "Client id", "Host"),
            rows=((row.member_id, row.instance_id or "", row.client_id, row.host),),
        )

    async def carry_out(self, given: Given) -> ActionResult:
        group, row = await self._find(given)
        services = self._view.services
        if services is None or row.member_id not in services.groups.expire_sessions(group, row.member_id):
            raise WrongQuestionError(
                "Nothing was done: the member waits for the coordinator, so its session cannot end."
            )
        what = f"The session of {row.member_id} in the group {group} has ended."
        return ActionResult(what, f"/group?id={quote(group, safe='')}", group)

    async def _find(self, given: Given) -> tuple[str, MemberRow]:
        """The group and the member. Raises NotFoundError, KafkaError."""
        group = given.get("id", "")
        if self._rights is not None:
            self._rights.check(self.api, group)
        for row in (await self._view.group(group)).members:
            if row.member_id == given.get("member"):
                return group, row
        raise NotFoundError(f"The group {group} has no member {given.get('member', '')}.")
