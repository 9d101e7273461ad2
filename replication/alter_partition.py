"""Requests to the controller for changes of the in-sync replicas (AlterPartition, KIP-497).

Rules, those of Kafka's DefaultAlterPartitionManager and Partition:

- One request is under way at a time, with every change that waits; what comes meanwhile goes with the next one.
- A partition has one change at a time (``isr``). Another state from the controller makes it void: then it is not sent, or
  its answer is ignored.
- A request is repeated until it is answered, because the leader cannot know whether the controller has done what it asks.
- For each partition the controller answers with the state that it has now; or that it has refused the change for good; or
  with an error which says that this broker, or the controller, is not up to date: then nothing happens until the controller
  sends a new state. After any other error the change is sent again.
- A replica that is to join is named with the broker epoch under which it has caught up (KIP-903). Kafka's controller compares
  that only in KRaft mode, Ottla's always: a broker that was restarted before the controller decides does not join.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

import trio

from ..base.errors import ErrorCode, KafkaError, known_code
from ..base.partitions import NO_BROKER_EPOCH
from ..wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)
from ..wire.schema import ZERO_UUID
from .controller_channel import RequestChannel
from .isr import CommittedPartitionState, PendingExpand, PendingIsr
from .isr_report import IsrReport
from .partition import Partition

logger = logging.getLogger(__name__)

RETRY_SECONDS = 0.05
"""Between two attempts, as in Kafka."""

_HIGHEST_WITHOUT_IDS = 1
_RECOVERED = 0

_REFUSED = (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA)
_OUT_OF_DATE = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.NEW_LEADER_ELECTED,
)

PartitionName = tuple[str, int]


class _Sent(NamedTuple):
    """A change that is being sent."""

    partition: Partition
    change: PendingIsr


class AlterPartitionManager:
    """The ``IsrChanges`` of a broker; ``run`` sends what is submitted."""

    def __init__(self, broker_id: int, controller: RequestChannel, broker_epoch: Callable[[], int]) -> None:
        """``broker_epoch`` tells under which epoch this broker is registered."""
        self._broker_id = broker_id
        self._controller = controller
        self._broker_epoch = broker_epoch
        self._waiting: dict[PartitionName, Partition] = {}
        self._arrived = trio.Event()
        self._failures = 0
        self._report = IsrReport()

    def submit(self, partition: Partition) -> None:
        """Have the change that is pending in ``partition`` sent."""
        self._waiting[partition.topic, partition.log.partition] = partition
        self._arrived.set()

    async def run(self) -> None:
        """Send until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._report.run)
            await self._send_all()

    async def _send_all(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived = trio.Event()
            while sent := self._take():
                again = await self._send(sent)
                for name, partition in again.items():
                    self._waiting.setdefault(name, partition)  # one submitted meanwhile may be of a partition made anew
                if again:
                    await trio.sleep(RETRY_SECONDS)

    def _take(self) -> dict[PartitionName, _Sent]:
        """The changes that wait, except for those that are void by now; none waits any more."""
        changes = {}
        waiting, self._waiting = self._waiting, {}
        for name, partition in waiting.items():
            state = None if partition.leader is None else partition.leader.isr
            if state is not None and not isinstance(state, CommittedPartitionState):
                changes[name] = _Sent(partition, state)
        return changes

    async def _send(self, sent: Mapping[PartitionName, _Sent]) -> dict[PartitionName, Partition]:
        """Send one request and apply its answer; returns the partitions whose change is to be sent again."""
        everything = {name: change.partition for name, change in sent.items()}
        has_ids = all(partition.topic_id != ZERO_UUID for partition in everything.values())
        highest = None if has_ids else _HIGHEST_WITHOUT_IDS
        request = self._request(sent)
        try:
            response: AlterPartitionResponse = await self._controller.send(request, highest=highest)
        except KafkaError as error:
            self._note_failure(str(error))
            return everything
        if response.error_code:
            self._note_failure(f"{known_code(response.error_code).name} under broker epoch {request.broker_epoch}")
            return everything
        self._failures = 0
        topics = {change.partition.topic_id: change.partition.topic for change in sent.values()}
        answers = {
            (topic.topic_name or topics.get(topic.topic_id, ""), answer.partition_index): answer
            for topic in response.topics
            for answer in topic.partitions
        }
        return {
            name: change.partition
            for name, change in sent.items()
            if name not in answers or not self._is_done(name, change, answers[name])
        }

    def _is_done(self, name: PartitionName, sent: _Sent, answer: ResponsePartitionData) -> bool:
        """Hand the partition its answer; False when the change is to be sent again."""
        partition, change = sent
        code = known_code(answer.error_code)
        is_current = partition.leader is not None and partition.leader.isr is change
        if is_current:
            self._report.note(f"{name[0]}-{name[1]}", change, code)
        if code is ErrorCode.NONE:
            partition.isr_changed(change, tuple(answer.isr), answer.leader_epoch, answer.partition_epoch)
            return True
        partition.counters.failed_isr_updates += is_current
        if code in _REFUSED:
            partition.isr_refused(change)
        return code in _REFUSED or code in _OUT_OF_DATE

    def _note_failure(self, why: str) -> None:
        self._failures += 1
        level = logging.WARNING if self._failures == 1 else logging.DEBUG
        logger.log(level, "Changes of in-sync replicas did not reach the controller; trying again: %s", why)

    def _request(self, sent: Mapping[PartitionName, _Sent]) -> AlterPartitionRequest:
        topics: dict[tuple[str, bytes], TopicData] = {}
        for (topic, number), (partition, change) in sent.items():
            data = topics.setdefault(
                (topic, partition.topic_id), TopicData(topic_name=topic, topic_id=partition.topic_id, partitions=[])
            )
            data.partitions.append(
                PartitionData(
                    partition_index=number,
                    leader_epoch=partition.leader_epoch,
                    new_isr_with_epochs=[
                        BrokerState(broker_id=replica, broker_epoch=_epoch_to_join(change, replica))
                        for replica in change.proposed
                    ],
                    leader_recovery_state=_RECOVERED,
                    partition_epoch=partition.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._broker_id, broker_epoch=self._broker_epoch(), topics=list(topics.values())
        )


def _epoch_to_join(change: PendingIsr, replica: int) -> int:
    if isinstance(change, PendingExpand) and change.joining == replica:
        return change.broker_epoch
    return NO_BROKER_EPOCH
