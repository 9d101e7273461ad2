"""The driver of confluent-kafka, Python's binding of librdkafka."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Literal

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from ottla.compat_tests.clients import model
from ottla.compat_tests.clients.security import OAUTHBEARER, Security, librdkafka_properties

TIMEOUT_S = 20.0
TOKEN_LIFE_S = 600.0
STARTS = {"beginning": confluent_kafka.OFFSET_BEGINNING, "end": confluent_kafka.OFFSET_END}
OPERATIONS = {
    "set": AlterConfigOpType.SET,
    "delete": AlterConfigOpType.DELETE,
    "append": AlterConfigOpType.APPEND,
    "subtract": AlterConfigOpType.SUBTRACT,
}
LIST_OFFSETS = {-1: OffsetSpec.latest, -2: OffsetSpec.earliest, -3: OffsetSpec.max_timestamp}


def failure(error: KafkaError) -> model.ClientFailure:
    """Negative codes are librdkafka's own."""
    return model.ClientFailure(error.code() if error.code() > 0 else None, str(error))


@contextlib.contextmanager
def failures() -> Iterator[None]:
    """Turn the client's exceptions into ClientFailure."""
    try:
        yield
    except KafkaException as error:
        raise failure(error.args[0]) from error


def result_of(future: Future[Any]) -> Any:
    """Wait for one answer of the admin client."""
    with failures():
        return future.result(timeout=TIMEOUT_S)


class Producer(model.Producer):
    """confluent_kafka.Producer."""

    def __init__(self, bootstrap: str, settings: model.ProducerSettings, way_in: Mapping[str, Any]) -> None:
        configuration = dict(way_in)
        if settings.transactional_id is not None:
            configuration["transactional.id"] = settings.transactional_id
            configuration["transaction.timeout.ms"] = settings.transaction_timeout_ms
        self._producer = confluent_kafka.Producer(
            configuration
            | {
                "bootstrap.servers": bootstrap,
                "acks": settings.acks,
                "compression.type": settings.compression,
                "enable.idempotence": settings.idempotent or settings.transactional_id is not None,
                "linger.ms": settings.linger_ms,
                "message.max.bytes": settings.max_request_size,
                "message.timeout.ms": min(settings.delivery_timeout_ms, settings.transaction_timeout_ms),
                "request.timeout.ms": settings.request_timeout_ms,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        if settings.transactional_id is not None:
            with failures():
                self._producer.init_transactions(TIMEOUT_S)
        self._sent = 0
        self._reports: dict[int, model.Delivery | model.ClientFailure] = {}

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: model.Headers = (),
    ) -> None:
        number = self._sent
        self._sent += 1

        def report(error: KafkaError | None, message: Any) -> None:
            if error is not None:
                self._reports[number] = failure(error)
            else:
                offset = message.offset() if message.offset() is not None else -1
                self._reports[number] = model.Delivery(message.topic(), message.partition(), offset)

        with failures():
            self._producer.produce(
                topic,
                value=value,
                key=key,
                partition=-1 if partition is None else partition,
                timestamp=timestamp_ms or 0,
                headers=list(headers),
                on_delivery=report,
            )

    def flush(self) -> list[model.Delivery]:
        left = self._producer.flush(60)
        reports, self._reports, self._sent = self._reports, {}, 0
        if left:
            raise model.ClientFailure(None, f"{left} records are not delivered after 60 s")
        deliveries = []
        for _number, report in sorted(reports.items()):
            if isinstance(report, model.ClientFailure):
                raise report
            deliveries.append(report)
        return deliveries

    def begin(self) -> None:
        with failures():
            self._producer.begin_transaction()

    def commit(self) -> None:
        self._repeated(self._producer.commit_transaction)

    def abort(self) -> None:
        self._repeated(self._producer.abort_transaction)

    def send_offsets(self, offsets: Mapping[tuple[str, int], int], group: object) -> None:
        wanted = [TopicPartition(*where, offset) for where, offset in offsets.items()]
        self._repeated(lambda timeout_s: self._producer.send_offsets_to_transaction(wanted, group, timeout_s))

    def _repeated(self, call: Callable[[float], None]) -> None:
        """The client wants calls repeated that timed out, as it says in the error."""
        deadline = time.monotonic() + 3 * TIMEOUT_S
        while True:
            try:
                call(TIMEOUT_S)
            except KafkaException as error:
                if error.args[0].retriable() and time.monotonic() < deadline:
                    continue
                raise failure(error.args[0]) from error
            self._reports, self._sent = {}, 0
            return

    def close(self) -> None:
        self._producer.purge()
        with contextlib.suppress(KafkaException):  # what was fatal has been reported
            self._producer.flush(1)


class Consumer(model.Consumer):
    """confluent_kafka.Consumer."""

    def __init__(self, bootstrap: str, settings: model.ConsumerSettings, way_in: Mapping[str, Any]) -> None:
        configuration: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "client.id": settings.client_id,
            # The client insists on a group id, also where no group is used.
            "group.id": settings.group_id or "unused",
            "auto.offset.reset": "error" if settings.auto_offset_reset == "none" else settings.auto_offset_reset,
            "enable.auto.commit": settings.auto_commit and settings.group_id is not None,
            "auto.commit.interval.ms": settings.auto_commit_interval_ms,
            "fetch.wait.max.ms": settings.fetch_max_wait_ms,
            "fetch.min.bytes": settings.fetch_min_bytes,
            "fetch.max.bytes": settings.fetch_max_bytes,
            "max.partition.fetch.bytes": settings.max_partition_fetch_bytes,
            "message.max.bytes": min(settings.fetch_max_bytes, 1_000_000),
            "max.poll.interval.ms": settings.max_poll_interval_ms,
            "isolation.level": "read_committed" if settings.read_committed else "read_uncommitted",
            "topic.metadata.refresh.interval.ms": 1_000,
            "socket.timeout.ms": 60_000,
            "fetch.queue.backoff.ms": 10,
            "fetch.error.backoff.ms": 50,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
            **way_in,
        }
        if settings.group_instance_id is not None:
            configuration["group.instance.id"] = settings.group_instance_id
        if settings.group_protocol == "consumer":
            configuration["group.protocol"] = "consumer"
            if settings.remote_assignor is not None:
                configuration["group.remote.assignor"] = settings.remote_assignor
        else:
            configuration["session.timeout.ms"] = settings.session_timeout_ms
            configuration["heartbeat.interval.ms"] = settings.heartbeat_interval_ms
        self._consumer = confluent_kafka.Consumer(configuration)
        self._rebalances: list[model.Rebalance] = []

    def assign(self, starts: Mapping[tuple[str, int], model.Start]) -> None:
        with failures():
            self._consumer.assign(
                [
                    TopicPartition(topic, partition, STARTS[start] if isinstance(start, str) else start)
                    for (topic, partition), start in starts.items()
                ]
            )

    def subscribe(self, topics: Sequence[str]) -> None:
        def note(change: Literal["assigned", "revoked", "lost"]) -> Callable[[Any, list[TopicPartition]], None]:
            return lambda _, partitions: self._rebalances.append(
                model.Rebalance(change, frozenset((each.topic, each.partition) for each in partitions))
            )

        with failures():
            self._consumer.subscribe(
                list(topics), on_assign=note("assigned"), on_revoke=note("revoked"), on_lost=note("lost")
            )

    def subscribe_pattern(self, pattern: str) -> None:
        self.subscribe([pattern])

    def subscribe_broker_pattern(self, pattern: str) -> None:
        """The library leaves every pattern to the broker."""
        self.subscribe([pattern])

    def rebalances(self) -> list[model.Rebalance]:
        return list(self._rebalances)

    def poll(self, timeout_s: float) -> list[model.Message]:
        with failures():
            first = self._consumer.poll(timeout_s)
            raw = [] if first is None else [first, *self._consumer.consume(1000, 0)]
        for message in raw:
            if message.error() is not None:
                raise failure(message.error())
        return [to_message(message) for message in raw]

    def seek(self, topic: str, partition: int, offset: int) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                self._consumer.seek(TopicPartition(topic, partition, offset))
                return
            except KafkaException as error:
                # The partition is not being fetched yet.
                if error.args[0].code() != KafkaError._STATE or time.monotonic() > deadline:
                    raise failure(error.args[0]) from error
                self._consumer.poll(0.05)

    def position(self, topic: str, partition: int) -> int:
        with failures():
            (at,) = self._consumer.position([TopicPartition(topic, partition)])
        return int(at.offset)

    def assignment(self) -> frozenset[tuple[str, int]]:
        return frozenset((where.topic, where.partition) for where in self._consumer.assignment())

    def commit(self, offsets: Mapping[tuple[str, int], model.Committed]) -> None:
        wanted = [
            TopicPartition(topic, partition, at.offset, at.metadata) for (topic, partition), at in offsets.items()
        ]
        with failures():
            for where in self._consumer.commit(offsets=wanted, asynchronous=False):
                if where.error is not None:
                    raise failure(where.error)

    def committed(self, topic: str, partition: int) -> model.Committed | None:
        with failures():
            (at,) = self._consumer.committed([TopicPartition(topic, partition)], timeout=TIMEOUT_S)
        return None if at.offset < 0 else model.Committed(at.offset, at.metadata or "")

    def group(self) -> object:
        return self._consumer.consumer_group_metadata()

    def watermarks(self, topic: str, partition: int) -> tuple[int, int]:
        with failures():
            low, high = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=TIMEOUT_S)
        return low, high

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        with failures():
            (found,) = self._consumer.offsets_for_times([TopicPartition(topic, partition, timestamp_ms)], TIMEOUT_S)
        return None if found.offset < 0 else int(found.offset)

    def close(self) -> None:
        with failures():
            self._consumer.close()


def to_message(message: Any) -> model.Message:
    """Timestamp types are 0 not available, 1 create, 2 append in this client."""
    kind, timestamp = message.timestamp()
    return model.Message(
        message.topic(),
        message.partition(),
        message.offset(),
        timestamp,
        kind - 1,
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
    )


class Admin(model.Admin):
    """confluent_kafka.admin.AdminClient."""

    def __init__(self, bootstrap: str, way_in: Mapping[str, Any]) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, **way_in})

    def create_topic(
        self,
        name: str,
        partitions: int,
        replication_factor: int = 1,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        topic = NewTopic(name, partitions, replication_factor, config=dict(configs or {}))
        result_of(self._admin.create_topics([topic], validate_only=validate_only)[name])

    def delete_topic(self, name: str) -> None:
        result_of(self._admin.delete_topics([name])[name])

    def list_topics(self) -> set[str]:
        with failures():
            return set(self._admin.list_topics(timeout=TIMEOUT_S).topics)

    def describe_topic(self, name: str) -> model.TopicDescription:
        names = confluent_kafka.TopicCollection([name])
        described = result_of(self._admin.describe_topics(names)[name])
        return model.TopicDescription(described.name, {part.id: part.leader.id for part in described.partitions})

    def create_partitions(self, topic: str, total: int) -> None:
        result_of(self._admin.create_partitions([NewPartitions(topic, total)])[topic])

    def describe_configs(self, kind: Literal["topic", "broker"], name: str) -> dict[str, model.ConfigEntry]:
        resource = ConfigResource(ResourceType[kind.upper()], name)
        (future,) = self._admin.describe_configs([resource]).values()
        return {
            config: model.ConfigEntry(
                entry.value,
                entry.source,
                entry.is_read_only,
                entry.is_sensitive,
                tuple((each.name, each.value, each.source) for each in entry.synonyms.values()),
            )
            for config, entry in result_of(future).items()
        }

    def alter_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ResourceType.TOPIC, topic, set_config=dict(configs))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # it is deprecated, and in use
            (future,) = self._admin.alter_configs([resource]).values()
        result_of(future)

    def incremental_alter_configs(self, topic: str, changes: Iterable[tuple[str, str, str | None]]) -> None:
        entries = [
            ConfigEntry(name, value, incremental_operation=OPERATIONS[operation]) for operation, name, value in changes
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        (future,) = self._admin.incremental_alter_configs([resource]).values()
        result_of(future)

    def list_groups(self) -> set[str]:
        listing = result_of(self._admin.list_consumer_groups(request_timeout=TIMEOUT_S))
        if listing.errors:
            raise failure(listing.errors[0])
        return {group.group_id for group in listing.valid}

    def describe_group(self, group_id: str) -> model.GroupDescription:
        group = result_of(self._admin.describe_consumer_groups([group_id])[group_id])
        members = {
            member.member_id: frozenset((where.topic, where.partition) for where in member.assignment.topic_partitions)
            for member in group.members
        }
        state = {"PREPARING_REBALANCING": "PreparingRebalance", "COMPLETING_REBALANCING": "CompletingRebalance"}.get(
            group.state.name, group.state.name.capitalize()
        )
        return model.GroupDescription(group_id, state, "consumer", members)

    def delete_group(self, group_id: str) -> None:
        result_of(self._admin.delete_consumer_groups([group_id])[group_id])

    def group_offsets(self, group_id: str) -> dict[tuple[str, int], model.Committed]:
        request = [confluent_kafka.ConsumerGroupTopicPartitions(group_id)]
        offsets = result_of(self._admin.list_consumer_group_offsets(request)[group_id])
        return {
            (where.topic, where.partition): model.Committed(where.offset, where.metadata or "")
            for where in offsets.topic_partitions
        }

    def alter_group_offsets(self, group_id: str, offsets: Mapping[tuple[str, int], model.Committed]) -> None:
        wanted = [
            TopicPartition(topic, partition, at.offset, at.metadata) for (topic, partition), at in offsets.items()
        ]
        request = [confluent_kafka.ConsumerGroupTopicPartitions(group_id, wanted)]
        for where in result_of(self._admin.alter_consumer_group_offsets(request)[group_id]).topic_partitions:
            if where.error is not None:
                raise failure(where.error)

    def delete_records(self, topic: str, partition: int, before_offset: int) -> int:
        where = TopicPartition(topic, partition, before_offset)
        (future,) = self._admin.delete_records([where]).values()
        return int(result_of(future).low_watermark)

    def list_offset(self, topic: str, partition: int, spec: int) -> int:
        wanted = LIST_OFFSETS[spec]() if spec in LIST_OFFSETS else OffsetSpec.for_timestamp(spec)
        (future,) = self._admin.list_offsets({TopicPartition(topic, partition): wanted}).values()
        return int(result_of(future).offset)

    def describe_cluster(self) -> model.ClusterDescription:
        cluster = result_of(self._admin.describe_cluster())
        controller = cluster.controller.id if cluster.controller is not None else -1
        return model.ClusterDescription(
            cluster.cluster_id, controller, {node.id: (node.host, node.port) for node in cluster.nodes}
        )

    def close(self) -> None:
        self._admin.poll(0)


class Client(model.Client):
    """confluent-kafka."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._way_in: dict[str, Any] = {}

    def version(self) -> str:
        return f"{confluent_kafka.version()} (librdkafka {confluent_kafka.libversion()[0]})"

    def secure(self, security: Security) -> None:
        self._way_in = dict(librdkafka_properties(security))
        if security.mechanism == OAUTHBEARER:
            self._way_in["oauth_cb"] = lambda _: (security.token, time.time() + TOKEN_LIFE_S)

    def producer(self, settings: model.ProducerSettings) -> model.Producer:
        return Producer(self._bootstrap, settings, self._way_in)

    def consumer(self, settings: model.ConsumerSettings) -> model.Consumer:
        return Consumer(self._bootstrap, settings, self._way_in)

    def admin(self) -> model.Admin:
        return Admin(self._bootstrap, self._way_in)
