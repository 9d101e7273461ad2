"""Deletion of topics by the controller.

A deletion begins with the node ``/admin/delete_topics/T``, which the controller or another broker makes; by it the next
controller knows of the deletion, too. Then clients are told, and live brokers are to delete their replicas; a dead broker, when
it is back. When the last replica is deleted, the nodes are removed (TopicDeletionManager). While replicas of a topic are being
moved its deletion waits.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping

from ....base.errors import ErrorCode, KafkaError
from ....base.partitions import TopicPartition
from ....base.wording import plural
from ..config_store import ConfigStore
from ..nodes import znodes
from ..state.context import ControllerContext
from ..state.partition_states import fenced_multi
from ..store.cluster_store import (
    ClusterStore,
    ConnectionLossError,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
)
from .controller_channel_manager import ControllerChannelManager
from .state_messages import stop_replica_requests, update_metadata_requests

logger = logging.getLogger(__name__)


class TopicDeletionManager:
    """Deletes topics for the controller; its methods are called one at a time. Each raises StoreError."""

    def __init__(
        self, store: ClusterStore, context: ControllerContext, configs: ConfigStore, senders: ControllerChannelManager
    ) -> None:
        self._store = store
        self._context = context
        self._configs = configs
        self._senders = senders
        self._left: dict[str, set[tuple[int, TopicPartition]]] = {}
        """By topic whose deletion is under way: the replicas that are not deleted yet."""

    async def load(self, marked: Collection[str], *, is_allowed: bool) -> None:
        """Note the deletions that the last controller has left; ``resume`` continues them."""
        if is_allowed:
            self._context.deleting_later = set(marked)
            self._take_ready()
        else:
            await self._unmark(marked)

    def _take_ready(self) -> None:
        """Let the deletion begin of topics that waited for it and of which no replica is being moved any more (KIP-455)."""
        context = self._context
        ready = {name for name in context.deleting_later if not context.is_moving(name)}
        context.deleting_later -= ready
        context.deleting |= ready

    async def begin(self, names: Iterable[str]) -> dict[str, KafkaError | None]:
        """Mark those topics that exist for deletion, and begin: the outcome by name."""
        context = self._context
        results: dict[str, KafkaError | None] = {}
        for name in names:
            unknown = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
            results[name] = None if name in context.topics else unknown
        new = [name for name, error in results.items() if error is None and not self._is_marked(name)]
        if new:
            await self._mark(new)
            self._add(new)
        await self.resume()
        return results

    def _is_marked(self, name: str) -> bool:
        return name in self._context.deleting or name in self._context.deleting_later

    def _add(self, names: Collection[str]) -> None:
        self._context.deleting_later.update(names)
        for name in names:
            if self._context.is_moving(name):
                logger.info("The deletion of topic %s waits until none of its replicas is being moved", name)

    async def _mark(self, names: Iterable[str]) -> None:
        nodes = [Create(znodes.delete_topic_path(name)) for name in names]
        try:
            await fenced_multi(self._store, self._context, nodes)
        except NodeExistsError as error:  # another broker was faster
            await self._mark([name for name in names if znodes.delete_topic_path(name) != error.path])

    async def follow(self, marked: Collection[str], *, is_allowed: bool) -> None:
        """Begin with the topics that another broker has marked; unmark those that do not exist, or all if none may be deleted."""
        context = self._context
        new = [name for name in sorted(marked) if not self._is_marked(name)]
        wanted = [name for name in new if name in context.topics and is_allowed]
        unwanted = [name for name in new if name not in wanted]
        await self._unmark(unwanted)
        self._add(wanted)
        await self.resume()

    async def _unmark(self, names: Collection[str]) -> None:
        if names:
            logger.warning(
                "Not deleted, because they do not exist or delete.topic.enable is false: %s", ", ".join(names)
            )
            operations = [Delete(znodes.delete_topic_path(name)) for name in names]
            await fenced_multi(self._store, self._context, operations)

    async def resume(self, started: Collection[int] = ()) -> None:
        """Begin with every marked topic that is not under way, and go on with those of brokers that were started."""
        context = self._context
        self._take_ready()
        new = [name for name in sorted(context.deleting) if name not in self._left]
        self._left.update((name, self._replicas_of(name)) for name in new)
        again = [name for name, left in self._left.items() if any(broker_id in started for broker_id, _ in left)]
        keys = [key for name in dict.fromkeys([*new, *again]) for key in self._keys(name)]
        for name in new:
            self._log_missing_brokers(name)
        if keys:
            update = update_metadata_requests(context, keys)
            self._senders.send({}, update, stop_replica_requests(context, keys, delete=True))
        await self._finish([name for name in new if not self._left[name]])

    def _log_missing_brokers(self, name: str) -> None:
        missed = sorted({broker_id for broker_id, _ in self._left[name]} - self._context.brokers.keys())
        if missed:
            who = f"{plural(len(missed), 'broker')} {', '.join(map(str, missed))}"
            logger.info("The deletion of topic %s waits for %s", name, who)

    async def process_response(self, broker_id: int, codes: Mapping[TopicPartition, int]) -> None:
        """A broker was to delete replicas. Those it could not delete wait for its restart."""
        for key, code in codes.items():
            if code == ErrorCode.NONE and key.topic in self._left:
                self._left[key.topic].discard((broker_id, key))
        await self._finish([name for name in {key.topic: None for key in codes} if self._left.get(name) == set()])

    async def _finish(self, names: Collection[str]) -> None:
        """The replicas of these topics are gone: remove their nodes."""
        if not names:
            return
        unknown: dict[str, None] = {}
        while True:
            operations = [operation for name in names for operation in await self._operations(name, unknown)]
            try:
                await fenced_multi(self._store, self._context, operations)
                break
            except (
                NotEmptyError
            ) as error:  # nodes that Kafka does not make are removed, too, as by deleteRecursive there
                logger.info("There is more below %s than was known", error.path)
                unknown |= dict.fromkeys(await self._below(error.path))
            except (NoNodeError, ConnectionLossError):
                logger.info("The nodes of deleted topics have changed, and are read again")
        for name in names:
            del self._left[name]
            self._context.deleting.discard(name)
            self._context.topics.pop(name, None)
            self._configs.put(name, {})
            logger.info("Deleted topic %s", name)

    def _keys(self, name: str) -> list[TopicPartition]:
        topic = self._context.topics.get(name)
        return [] if topic is None else [TopicPartition(name, number) for number in topic.partitions]

    def _replicas_of(self, name: str) -> set[tuple[int, TopicPartition]]:
        return {
            (broker_id, key)
            for key in self._keys(name)
            for broker_id in self._context.partition(key).assignment.replicas
        }

    async def _below(self, path: str) -> list[str]:
        """Everything below a node, children before their parents."""
        try:
            names = await self._store.children(path)
        except NoNodeError:
            return []
        return [below for name in names for below in [*await self._below(f"{path}/{name}"), f"{path}/{name}"]]

    async def _operations(self, name: str, unknown: Iterable[str]) -> list[Operation]:
        """What removes every node of a topic that is there: a deletion cut short left only some of them.

        ``unknown`` are nodes beside those of Kafka, children before their parents.
        """
        numbers = {key.partition for key in self._keys(name)}
        if numbers:
            try:
                numbers.update(znodes.numbers(await self._store.children(znodes.partitions_path(name))))
            except NoNodeError:
                pass
        paths = [path for path in unknown if path.startswith(f"{znodes.topic_path(name)}/")]
        for number in sorted(numbers):
            paths.append(znodes.state_path(name, number))
            paths.append(znodes.partition_path(name, number))
        if numbers:
            paths += [znodes.partitions_path(name), znodes.topic_path(name), znodes.topic_config_path(name)]
        paths = list(dict.fromkeys([*paths, znodes.delete_topic_path(name)]))
        nodes = await self._store.get_many(paths)
        return [Delete(path) for path, node in zip(paths, nodes, strict=True) if node is not None]
