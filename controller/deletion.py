"""Deleting topics, for the controller's term.

A deletion begins with the node ``/admin/delete_topics/T``, from where the next controller takes it up again. Then, as soon
as all of the topic's replicas are on live brokers, clients are told, and these brokers are to delete their replicas; when
the last one has, the nodes go. A broker that dies or is restarted meanwhile makes that begin anew.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import TopicPartition
from . import znodes
from .config_store import ConfigStore
from .context import ControllerContext
from .partition_states import fenced_multi
from .sender import Senders
from .state_messages import stop_replica_requests, update_metadata_requests
from .store import ClusterStore, Create, Delete, Operation

logger = logging.getLogger(__name__)


class Deletions:
    """The controller's hand on topics that are to go; its methods are called one at a time. Each raises StoreError."""

    def __init__(self, store: ClusterStore, context: ControllerContext, configs: ConfigStore, senders: Senders) -> None:
        self._store = store
        self._context = context
        self._configs = configs
        self._senders = senders
        self._left: dict[str, set[tuple[int, TopicPartition]]] = {}
        """By topic whose brokers were told: the replicas that are not deleted yet."""

    async def begin(self, names: Iterable[str]) -> dict[str, KafkaError | None]:
        """Mark those topics that exist for deletion, and begin with those that can be reached: the outcome by name."""
        context = self._context
        results: dict[str, KafkaError | None] = {}
        for name in names:
            unknown = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
            results[name] = None if name in context.topics else unknown
        new = [name for name, error in results.items() if error is None and name not in context.deleting]
        if new:
            await fenced_multi(self._store, context, [Create(znodes.delete_topic_path(name)) for name in new])
            context.deleting.update(new)
        await self.resume()
        return results

    async def resume(self) -> None:
        """Have every marked topic deleted that has all of its replicas on live brokers, if that is not under way."""
        context = self._context
        left = {name: self._replicas_of(name) for name in sorted(context.deleting) if name not in self._left}
        ready = {name: held for name, held in left.items() if all(broker in context.brokers for broker, _ in held)}
        if ready:
            self._left.update(ready)
            keys = [TopicPartition(t, n) for t in ready if t in context.topics for n in context.topics[t].partitions]
            update = update_metadata_requests(context, keys)
            self._senders.send({}, update, stop_replica_requests(context, keys, delete=True))
            await self._finish(name for name, held in ready.items() if not held)

    def forget_answers(self, brokers: Iterable[int]) -> None:
        """These brokers died or were restarted: ``resume`` begins anew with topics of theirs that are not deleted yet."""
        away = set(brokers)
        for name, left in list(self._left.items()):
            if any(broker in away for broker, _ in left):
                del self._left[name]

    async def take_answer(self, broker_id: int, codes: Mapping[TopicPartition, int]) -> None:
        """A broker has answered StopReplica. Replicas it could not delete wait for its restart."""
        for key, code in codes.items():
            if code == ErrorCode.NONE and key.topic in self._left:
                self._left[key.topic].discard((broker_id, key))
        await self._finish([name for name in {key.topic: None for key in codes} if self._left.get(name) == set()])

    async def _finish(self, names: Iterable[str]) -> None:
        """The replicas of these topics are gone: remove their nodes."""
        deleted = list(names)
        if not deleted:
            return
        for name in deleted:
            del self._left[name]
        operations = [operation for name in deleted for operation in await self._operations(name)]
        await fenced_multi(self._store, self._context, operations)
        for name in deleted:
            self._context.deleting.discard(name)
            self._context.topics.pop(name, None)
            self._configs.forget(name)
            logger.info("Deleted topic %s", name)

    def _replicas_of(self, name: str) -> set[tuple[int, TopicPartition]]:
        topic = self._context.topics.get(name)
        if topic is None:
            return set()
        return {
            (broker_id, TopicPartition(name, number))
            for number, partition in topic.partitions.items()
            for broker_id in partition.assignment.replicas
        }

    async def _operations(self, name: str) -> list[Operation]:
        """What removes every node of a topic that is there: a deletion cut short left only some of them."""
        topic = self._context.topics.get(name)
        paths = []
        if topic is not None:
            for number in topic.partitions:
                paths.append(znodes.state_path(name, number))
                paths.append(znodes.partition_path(name, number))
            paths += [znodes.partitions_path(name), znodes.topic_path(name), znodes.topic_config_path(name)]
        paths.append(znodes.delete_topic_path(name))
        nodes = await self._store.get_many(paths)
        return [Delete(path) for path, node in zip(paths, nodes, strict=True) if node is not None]
