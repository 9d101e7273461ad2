"""A cluster of Ottla's and Apache Kafka's brokers, with operations for tests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from confluent_kafka import Consumer, ElectionType, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.compat_tests.brokers import BrokerProcess
from ottla.compat_tests.raw.requests import list_offset
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection, connect, topic_metadata
from ottla.wire.messages.metadata import MetadataRequest

from .kafka_logs import troubles

OTTLA, KAFKA = "ottla", "kafka"
BOTH = (OTTLA, KAFKA)
_ELECTION_NOT_NEEDED = 84
PATIENCE_S = 90.0
"""The limit of waits that end with a session, and of a JVM's answer, on a busy machine."""


class BrokersOfBothKinds(Protocol):
    """A cluster of brokers in processes of their own; the first one has the id 1."""

    count: int

    @property
    def brokers(self) -> Sequence[BrokerProcess]:
        """In the order of their ids."""
        ...

    @property
    def bootstrap(self) -> str:
        """host:port of every broker, with commas between."""
        ...

    def broker(self, broker_id: int) -> BrokerProcess:
        """The broker of an id."""
        ...

    def kind(self, broker_id: int) -> str:
        """``ottla`` or ``kafka``."""
        ...

    def of_kind(self, kind: str) -> list[int]:
        """The ids of the brokers of one kind."""
        ...

    def start(self) -> None:
        """Start what does not run; returns when the brokers know each other."""
        ...

    def start_broker(self, broker_id: int) -> None:
        """Start one that was stopped or killed; returns when the brokers that run know it."""
        ...

    def restart_broker(self, broker_id: int) -> None:
        """Stop one as SIGTERM does, and start it again."""
        ...


class Mixed:
    """A started cluster, and clients of it, which have ``settings`` of librdkafka to get in."""

    internal_partitions = range(3)
    """Those of the topics of groups and of transactions."""

    def __init__(self, cluster: BrokersOfBothKinds, settings: Mapping[str, str] | None = None) -> None:
        self.cluster = cluster
        self.bootstrap = cluster.bootstrap
        self._settings = {"bootstrap.servers": self.bootstrap, "log_level": 0, **(settings or {})}
        # Else one waits for ever for the broker that it took for the controller, once that is stopped.
        refresh = {"topic.metadata.refresh.interval.ms": 1_000}
        self.admin = AdminClient({**self._settings, **refresh})
        self._seen = dict.fromkeys(cluster.brokers, 0)

    @property
    def ids(self) -> list[int]:
        return list(range(1, self.cluster.count + 1))

    def one(self, kind: str, *, but: Sequence[int] = ()) -> int:
        """The id of a broker of a kind."""
        return next(broker_id for broker_id in self.cluster.of_kind(kind) if broker_id not in but)

    def replicas_from(self, leader: int) -> list[int]:
        """All brokers as replicas, of which this one is preferred."""
        return [leader, *(broker_id for broker_id in self.ids if broker_id != leader)]

    def connect(self, broker_id: int) -> contextlib.AbstractContextManager[Connection]:
        """A connection to one broker."""
        return connect(self.cluster.broker(broker_id).address)

    def create(self, topic: str, *replicas: Sequence[int], **configs: str) -> None:
        """Create a topic with these replicas of its partitions, and wait until every broker knows the leaders."""
        settings = {name.replace("_", "."): value for name, value in configs.items()}
        new = NewTopic(topic, len(replicas), replica_assignment=[list(each) for each in replicas], config=settings)
        self.asked(lambda: self.admin.create_topics([new])[topic])
        self.wait(topic, {number: each[0] for number, each in enumerate(replicas)})

    def asked(self, request: Callable[[], Future[Any]]) -> Any:
        """The controller's response, with repetitions: the client first asks the last controller it knew, and reports its error.

        A topic that is still being deleted is created when it is gone.
        """

        def answer() -> tuple[Any] | None:
            try:
                return (request().result(PATIENCE_S),)
            except KafkaException as error:
                is_deleted_still = "marked for deletion" in error.args[0].str()
                if error.args[0].code() != KafkaError.NOT_CONTROLLER and not is_deleted_still:
                    raise
                self.admin.list_topics(timeout=PATIENCE_S)
                return None

        answered = eventually(answer, PATIENCE_S)
        assert answered is not None
        return answered[0]

    def leaders(self, topic: str, told_by: int) -> dict[int, int]:
        """The leaders, as a broker reports them to clients."""
        with self.connect(told_by) as connection:
            return {each.partition_index: each.leader_id for each in topic_metadata(connection, topic).partitions}

    def isr(self, topic: str, told_by: int, partition: int = 0) -> list[int]:
        """The in-sync replicas, as a broker reports them to clients."""
        with self.connect(told_by) as connection:
            found = {each.partition_index: each.isr_nodes for each in topic_metadata(connection, topic).partitions}
        return sorted(found.get(partition, []))

    def wait(self, topic: str, leaders: Mapping[int, int]) -> None:
        """Return when every running broker reports these leaders."""
        eventually(lambda: all(self.leaders(topic, each) == leaders for each in self.running()), PATIENCE_S)

    def wait_isr(self, topic: str, isr: Sequence[int], partition: int = 0) -> None:
        """Return when every running broker reports these in-sync replicas."""
        eventually(lambda: all(self.isr(topic, each, partition) == sorted(isr) for each in self.running()), PATIENCE_S)

    def wait_all_listed(self) -> None:
        """Return when every running broker lists all running ones: a fenced broker would get no preferred leaderships."""
        running = self.running()
        eventually(lambda: all(running == sorted(self._listed(each)) for each in running), PATIENCE_S)

    def _listed(self, told_by: int) -> list[int]:
        with self.connect(told_by) as connection:
            return [each.node_id for each in connection.call(MetadataRequest(topics=[]), 9).brokers]

    def running(self) -> list[int]:
        return [broker_id for broker_id in self.ids if self.cluster.broker(broker_id).is_running]

    def elect_preferred(self, topic: str, *partitions: int) -> None:
        """Elect the preferred leaders, once they are in sync; otherwise Kafka would log an error."""
        eventually(lambda: all(self._may_lead(topic, partitions, each) for each in self.running()), PATIENCE_S)
        wanted = [TopicPartition(topic, number) for number in partitions]
        errors: list[KafkaError] = []

        def elected() -> bool:
            answered = self.asked(lambda: self.admin.elect_leaders(ElectionType.PREFERRED, wanted))
            found = [each.error for each in answered if each.error is not None]
            errors[:] = [error for error in found if error.code() != _ELECTION_NOT_NEEDED]
            if any(
                error.code() == KafkaError.NOT_CONTROLLER for error in errors
            ):  # Kafka returns it for each partition
                self.admin.list_topics(timeout=PATIENCE_S)
            return not errors

        try:
            eventually(elected, PATIENCE_S)
        except AssertionError as late:
            raise AssertionError(f"{topic}: {errors}") from late

    def _may_lead(self, topic: str, partitions: Sequence[int], told_by: int) -> bool:
        """Whether the preferred leaders are in sync, as a broker reports it to clients."""
        with self.connect(told_by) as connection:
            found = {each.partition_index: each for each in topic_metadata(connection, topic).partitions}
        return all(
            number in found and found[number].replica_nodes[0] in found[number].isr_nodes for number in partitions
        )

    # --- records ------------------------------------------------------------------------------------------------------

    def produce(self, topic: str, values: Sequence[bytes], partition: int = 0, **settings: object) -> None:
        """Write values, by default with acks=all; all must be acknowledged."""
        producer = Producer({**self._settings, "acks": "all", **settings})
        failures: list[object] = []
        for value in values:
            producer.produce(
                topic,
                value,
                partition=partition,
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
        assert producer.flush(PATIENCE_S) == 0
        assert not failures, failures[0]

    def read(self, topic: str, count: int, partition: int = 0, **settings: object) -> list[bytes]:
        """The first ``count`` values of a partition."""
        consumer = Consumer({**self._settings, "group.id": "readers", **settings})
        consumer.assign([TopicPartition(topic, partition, 0)])
        values: list[bytes] = []

        def read() -> bool:
            found = consumer.consume(count - len(values), timeout=0.2)
            values.extend(message.value() for message in found if message.error() is None)
            return len(values) >= count

        with contextlib.closing(consumer):
            eventually(read, PATIENCE_S)
        return values

    def read_until(self, topic: str, last: bytes) -> list[bytes]:
        """The values of partition 0, up to and including this one."""
        with self.connect(self.leaders(topic, self.running()[0])[0]) as connection:
            count = list_offset(connection, topic, -1, 5).offset
        values = self.read(topic, count)
        assert values[-1] == last
        return values

    def segment(self, broker_id: int, topic: str, partition: int = 0) -> bytes:
        """The bytes of a partition's log at a broker, which has one segment."""
        (data,) = self.cluster.broker(broker_id).data_folders
        return b"".join(each.read_bytes() for each in sorted((data / f"{topic}-{partition}").glob("*.log")))

    def wait_same(self, topic: str, partition: int = 0) -> bytes:
        """Return when all of its replicas have the same bytes of a partition; returns them."""
        with self.connect(self.running()[0]) as connection:
            found = topic_metadata(connection, topic).partitions
        (replicas,) = [each.replica_nodes for each in found if each.partition_index == partition]

        def same() -> bytes | None:
            logs = {self.segment(each, topic, partition) for each in replicas}
            return logs.pop() if len(logs) == 1 else None

        return eventually(same, PATIENCE_S) or b""

    # --- logs ---------------------------------------------------------------------------------------------------------

    def troubles(self) -> list[str]:
        """The errors that the brokers have logged since the last call."""
        found = []
        for broker, seen in self._seen.items():
            kind = self.cluster.kind(self.cluster.brokers.index(broker) + 1)
            found += [f"{broker.folder.name}: {each}" for each in troubles(kind, broker, seen)]
            self._seen[broker] = len(broker.log())
        return found
