"""The driver of aiokafka, on an asyncio event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

import aiokafka
import aiokafka.errors
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.abc import AbstractTokenProvider
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.structs import OffsetAndMetadata

from ottla.compat_tests.clients import model
from ottla.compat_tests.clients.security import OAUTHBEARER, Security, ssl_context

# Connections break on purpose here, and the client would tell each time.
logging.getLogger("aiokafka").setLevel(logging.CRITICAL)

Result = TypeVar("Result")


@contextlib.contextmanager
def failures() -> Iterator[None]:
    """Turn the client's exceptions into ClientFailure."""
    try:
        yield
    except aiokafka.errors.KafkaError as error:
        code = getattr(error, "errno", None)
        raise model.ClientFailure(code if code is not None and code > 0 else None, repr(error)) from error


def check(code: int, text: object) -> None:
    """Raise the error that a raw response carries."""
    if code:
        raise model.ClientFailure(code, str(text))


class Loop:
    """Runs coroutines for a synchronous caller."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="aiokafka", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Result], timeout_s: float = 90) -> Result:
        """The coroutine's result."""
        with failures():
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout_s)

    def close(self) -> None:
        """Stop the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)


class Producer(model.Producer):
    """AIOKafkaProducer."""

    def __init__(self, loop: Loop, bootstrap: str, settings: model.ProducerSettings, way_in: Mapping[str, Any]) -> None:
        self._loop = loop
        self._futures: list[asyncio.Future[Any]] = []
        self._deadline_s = settings.delivery_timeout_ms / 1000

        async def start() -> AIOKafkaProducer:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                acks="all" if settings.acks == -1 else settings.acks,
                compression_type=None if settings.compression == "none" else settings.compression,
                enable_idempotence=settings.idempotent or settings.transactional_id is not None,
                transactional_id=settings.transactional_id,
                transaction_timeout_ms=settings.transaction_timeout_ms,
                linger_ms=settings.linger_ms,
                max_request_size=settings.max_request_size,
                request_timeout_ms=settings.delivery_timeout_ms,
                **way_in,
            )
            await producer.start()
            return producer

        self._producer = loop.run(start())

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
        self._futures.append(
            self._loop.run(
                self._producer.send(
                    topic, value=value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=list(headers)
                )
            )
        )

    def begin(self) -> None:
        self._loop.run(self._producer.begin_transaction())

    def commit(self) -> None:
        self._loop.run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._loop.run(self._producer.abort_transaction())

    def send_offsets(self, offsets: Mapping[tuple[str, int], int], group: object) -> None:
        wanted = {TopicPartition(*where): offset for where, offset in offsets.items()}
        self._loop.run(self._producer.send_offsets_to_transaction(wanted, group))

    def flush(self) -> list[model.Delivery]:
        futures, self._futures = self._futures, []

        async def wait() -> list[Any]:
            return [await future for future in futures]

        # With acks=0 the client resolves to None.
        results = self._loop.run(wait(), self._deadline_s + 30)
        return [
            model.Delivery("", -1, -1) if r is None else model.Delivery(r.topic, r.partition, r.offset) for r in results
        ]

    def close(self) -> None:
        self._loop.run(self._producer.stop())


class Consumer(model.Consumer):
    """AIOKafkaConsumer."""

    def __init__(self, loop: Loop, bootstrap: str, settings: model.ConsumerSettings, way_in: Mapping[str, Any]) -> None:
        self._loop = loop
        self._group_id = settings.group_id

        async def start() -> AIOKafkaConsumer:
            consumer = AIOKafkaConsumer(
                bootstrap_servers=bootstrap,
                client_id=settings.client_id,
                group_id=settings.group_id,
                group_instance_id=settings.group_instance_id,
                auto_offset_reset=settings.auto_offset_reset,
                enable_auto_commit=settings.auto_commit and settings.group_id is not None,
                auto_commit_interval_ms=settings.auto_commit_interval_ms,
                fetch_max_wait_ms=settings.fetch_max_wait_ms,
                fetch_min_bytes=settings.fetch_min_bytes,
                fetch_max_bytes=settings.fetch_max_bytes,
                max_partition_fetch_bytes=settings.max_partition_fetch_bytes,
                session_timeout_ms=settings.session_timeout_ms,
                heartbeat_interval_ms=settings.heartbeat_interval_ms,
                isolation_level="read_committed" if settings.read_committed else "read_uncommitted",
                request_timeout_ms=60_000,
                metadata_max_age_ms=1_000,
                **way_in,
            )
            await consumer.start()
            return consumer

        self._consumer = loop.run(start())

    def assign(self, starts: Mapping[tuple[str, int], model.Start]) -> None:
        async def assign() -> None:
            self._consumer.assign([TopicPartition(*where) for where in starts])
            for where, start in starts.items():
                if isinstance(start, int):
                    self._consumer.seek(TopicPartition(*where), start)
            for word, seek in (("beginning", self._consumer.seek_to_beginning), ("end", self._consumer.seek_to_end)):
                if some := [TopicPartition(*where) for where, start in starts.items() if start == word]:
                    await seek(*some)

        self._loop.run(assign())

    def subscribe(self, topics: Sequence[str]) -> None:
        async def subscribe() -> None:
            self._consumer.subscribe(topics=list(topics))

        self._loop.run(subscribe())

    def subscribe_pattern(self, pattern: str) -> None:
        async def subscribe() -> None:
            self._consumer.subscribe(pattern=pattern)

        self._loop.run(subscribe())

    def poll(self, timeout_s: float) -> list[model.Message]:
        polled = self._loop.run(self._consumer.getmany(timeout_ms=int(timeout_s * 1000)))
        return [
            model.Message(
                record.topic,
                record.partition,
                record.offset,
                record.timestamp,
                record.timestamp_type,
                record.key,
                record.value,
                tuple(record.headers),
            )
            for records in polled.values()
            for record in records
        ]

    def seek(self, topic: str, partition: int, offset: int) -> None:
        async def seek() -> None:
            self._consumer.seek(TopicPartition(topic, partition), offset)

        self._loop.run(seek())

    def position(self, topic: str, partition: int) -> int:
        return int(self._loop.run(self._consumer.position(TopicPartition(topic, partition))))

    def assignment(self) -> frozenset[tuple[str, int]]:
        return frozenset((where.topic, where.partition) for where in self._consumer.assignment())

    def commit(self, offsets: Mapping[tuple[str, int], model.Committed]) -> None:
        wanted = {TopicPartition(*where): OffsetAndMetadata(at.offset, at.metadata) for where, at in offsets.items()}
        self._loop.run(self._consumer.commit(wanted))

    def committed(self, topic: str, partition: int) -> model.Committed | None:
        offset = self._loop.run(self._consumer.committed(TopicPartition(topic, partition)))
        return None if offset is None else model.Committed(offset)

    def group(self) -> object:
        return self._group_id

    def watermarks(self, topic: str, partition: int) -> tuple[int, int]:
        where = TopicPartition(topic, partition)
        low = self._loop.run(self._consumer.beginning_offsets([where]))[where]
        return low, self._loop.run(self._consumer.end_offsets([where]))[where]

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        where = TopicPartition(topic, partition)
        found = self._loop.run(self._consumer.offsets_for_times({where: timestamp_ms}))[where]
        return None if found is None else int(found.offset)

    def close(self) -> None:
        self._loop.run(self._consumer.stop())


class Admin(model.Admin):
    """AIOKafkaAdminClient: most of its results are raw responses."""

    def __init__(self, loop: Loop, bootstrap: str, way_in: Mapping[str, Any]) -> None:
        self._loop = loop

        async def start() -> AIOKafkaAdminClient:
            admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=20_000, **way_in)
            await admin.start()
            return admin

        self._admin = loop.run(start())

    def create_topic(
        self,
        name: str,
        partitions: int,
        replication_factor: int = 1,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        topic = NewTopic(name, partitions, replication_factor, topic_configs=dict(configs or {}))
        response = self._loop.run(self._admin.create_topics([topic], validate_only=validate_only))
        for _topic, code, message in response.topic_errors:
            check(code, message)

    def delete_topic(self, name: str) -> None:
        for topic, code in self._loop.run(self._admin.delete_topics([name])).topic_error_codes:
            check(code, topic)

    def list_topics(self) -> set[str]:
        return set(self._loop.run(self._admin.list_topics()))

    def describe_topic(self, name: str) -> model.TopicDescription:
        (topic,) = self._loop.run(self._admin.describe_topics([name]))
        check(topic["error_code"], topic)
        return model.TopicDescription(name, {part["partition"]: part["leader"] for part in topic["partitions"]})

    def create_partitions(self, topic: str, total: int) -> None:
        self._loop.run(self._admin.create_partitions({topic: NewPartitions(total)}))

    def describe_configs(self, kind: Literal["topic", "broker"], name: str) -> dict[str, model.ConfigEntry]:
        resource = ConfigResource(ConfigResourceType[kind.upper()], name)
        (response,) = self._loop.run(self._admin.describe_configs([resource], include_synonyms=True))
        ((code, message, _kind, _name, entries),) = response.resources
        check(code, message)
        return {
            entry[0]: model.ConfigEntry(entry[1], entry[3], entry[2], entry[4], tuple(map(tuple, entry[5])))
            for entry in entries
        }

    def alter_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs=dict(configs))
        for response in self._loop.run(self._admin.alter_configs([resource])):
            for code, message, _kind, _name in response.resources:
                check(code, message)

    def list_groups(self) -> set[str]:
        return {group_id for group_id, _protocol_type in self._loop.run(self._admin.list_consumer_groups())}

    def describe_group(self, group_id: str) -> model.GroupDescription:
        (response,) = self._loop.run(self._admin.describe_consumer_groups([group_id]))
        ((code, _group, state, protocol_type, _protocol, raw_members, *_),) = response.groups
        check(code, group_id)
        members = {}
        for member in raw_members:
            assignment = member[-1]
            owned = ConsumerProtocolMemberAssignment.decode(assignment).partitions() if assignment else ()
            members[member[0]] = frozenset((where.topic, where.partition) for where in owned)
        return model.GroupDescription(group_id, state, protocol_type, members)

    def group_offsets(self, group_id: str) -> dict[tuple[str, int], model.Committed]:
        offsets = self._loop.run(self._admin.list_consumer_group_offsets(group_id))
        return {
            (where.topic, where.partition): model.Committed(at.offset, at.metadata) for where, at in offsets.items()
        }

    def delete_records(self, topic: str, partition: int, before_offset: int) -> int:
        where = TopicPartition(topic, partition)
        return int(self._loop.run(self._admin.delete_records({where: RecordsToDelete(before_offset)}))[where])

    def describe_cluster(self) -> model.ClusterDescription:
        cluster = self._loop.run(self._admin.describe_cluster())
        return model.ClusterDescription(
            cluster.get("cluster_id"),
            cluster["controller_id"],
            {broker["node_id"]: (broker["host"], broker["port"]) for broker in cluster["brokers"]},
        )

    def close(self) -> None:
        self._loop.run(self._admin.close())


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """A token that the client is given."""

    def __init__(self, text: str) -> None:
        self._text = text

    async def token(self) -> str:
        return self._text


def way_in(security: Security) -> dict[str, Any]:
    """The arguments of all three clients that say how they get in."""
    options: dict[str, Any] = {"security_protocol": security.protocol}
    if security.is_encrypted:
        options["ssl_context"] = ssl_context(security)
    if security.mechanism is not None:
        options["sasl_mechanism"] = security.mechanism
    if security.mechanism == OAUTHBEARER:
        options["sasl_oauth_token_provider"] = TokenProvider(security.token)
    elif security.mechanism is not None:
        options |= {"sasl_plain_username": security.username, "sasl_plain_password": security.password}
    return options


class Client(model.Client):
    """aiokafka."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._loop = Loop()
        self._way_in: dict[str, Any] = {}

    def version(self) -> str:
        return str(aiokafka.__version__)

    def secure(self, security: Security) -> None:
        self._way_in = way_in(security)

    def producer(self, settings: model.ProducerSettings) -> model.Producer:
        return Producer(self._loop, self._bootstrap, settings, self._way_in)

    def consumer(self, settings: model.ConsumerSettings) -> model.Consumer:
        return Consumer(self._loop, self._bootstrap, settings, self._way_in)

    def admin(self) -> model.Admin:
        return Admin(self._loop, self._bootstrap, self._way_in)

    def close(self) -> None:
        self._loop.close()
