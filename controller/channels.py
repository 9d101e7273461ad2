"""How a controller reaches the brokers: one ``BrokerChannel`` each, the local one a call, a remote one a socket."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from ..base.errors import ErrorCode
from ..wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from ..wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from ..wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from .context import TopicPartition

logger = logging.getLogger(__name__)


class BrokerChannel(Protocol):
    """One broker, as its controller talks to it."""

    async def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse: ...

    async def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse: ...

    async def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse: ...


class Channels:
    """The channels by broker id. A broker without one is passed over: it is told everything once it has one."""

    def __init__(self, channels: Mapping[int, BrokerChannel]) -> None:
        self._channels = dict(channels)

    async def leader_and_isr(self, requests: Mapping[int, LeaderAndIsrRequest]) -> dict[int, dict[TopicPartition, int]]:
        """The error codes by broker and partition, of those brokers that took the request."""
        answers = {}
        for broker_id, request in requests.items():
            if channel := self._channels.get(broker_id):
                response = await channel.leader_and_isr(request)
                names = {state.topic_id: state.topic_name for state in request.topic_states}
                codes = {
                    TopicPartition(names[topic.topic_id], error.partition_index): error.error_code
                    for topic in response.topics
                    for error in topic.partition_errors
                }
                _log_refusals("LeaderAndIsr", broker_id, {response.error_code, *codes.values()})
                answers[broker_id] = codes
        return answers

    async def update_metadata(self, requests: Mapping[int, UpdateMetadataRequest]) -> None:
        for broker_id, request in requests.items():
            if channel := self._channels.get(broker_id):
                response = await channel.update_metadata(request)
                _log_refusals("UpdateMetadata", broker_id, {response.error_code})

    async def stop_replica(self, requests: Mapping[int, StopReplicaRequest]) -> set[int]:
        """Ends the replicas; the brokers that did so everywhere."""
        done = set()
        for broker_id, request in requests.items():
            if channel := self._channels.get(broker_id):
                response = await channel.stop_replica(request)
                codes = {p.error_code for p in response.partition_errors} | {response.error_code}
                _log_refusals("StopReplica", broker_id, codes)
                if codes == {ErrorCode.NONE}:
                    done.add(broker_id)
        return done


def _log_refusals(request: str, broker_id: int, codes: set[int]) -> None:
    refused = sorted(codes - {0})
    if refused:
        names = ", ".join(ErrorCode(code).name for code in refused)
        # That is how a broker tells of the partitions in a folder that has failed, which its own log has as an error.
        level = logging.INFO if refused == [ErrorCode.KAFKA_STORAGE_ERROR] else logging.WARNING
        logger.log(level, "Broker %d answered %s with %s", broker_id, request, names)
