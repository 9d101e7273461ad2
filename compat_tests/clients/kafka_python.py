"""The driver of kafka-python 3.x, and the parts that it shares with the one of 2.x."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Literal

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.structs import OffsetAndMetadata

from ottla.compat_tests.clients import model
from ottla.compat_tests.clients.security import OAUTHBEARER, Security

# Connections break on purpose here, and the client would tell each time.
logging.getLogger("kafka").setLevel(logging.CRITICAL)

END_TRANSACTION_S = 40.0
BOOTSTRAP_MS = 10_000
"""For how long a client that is not let in tries again; 2.x knows no such limit."""


@contextlib.contextmanager
def failures() -> Iterator[None]:
    """Turn the client's exceptions into ClientFailure."""
    try:
        yield
    except ValueError as error:
        raise model.ClientFailure(None, repr(error)) from error
    except kafka.errors.KafkaError as error:
        code = getattr(error, "errno", None)
        raise model.ClientFailure(code if code is not None and code > 0 else None, repr(error)) from error


def within_limit(end_transaction: Callable[[], None]) -> None:
    """Commit or abort, or fail: 3.0.12 waits for ever when the broker was away at the moment it wanted to send EndTxn.

    Its sender forgets a transactional request when the connection for it cannot be made.
    """
    outcome: Future[None] = Future()

    def run() -> None:
        try:
            end_transaction()
        except BaseException as error:
            outcome.set_exception(error)
        else:
            outcome.set_result(None)

    threading.Thread(target=run, daemon=True).start()
    with failures():
        try:
            outcome.result(END_TRANSACTION_S)
        except TimeoutError:
            raise model.ClientFailure(None, f"the transaction has not ended after {END_TRANSACTION_S} s") from None


class Producer(model.Producer):
    """KafkaProducer."""

    def __init__(self, bootstrap: str, settings: model.ProducerSettings, way_in: Mapping[str, Any]) -> None:
        with failures():
            self._producer = KafkaProducer(
                bootstrap_servers=bootstrap,
                acks=settings.acks,
                compression_type=None if settings.compression == "none" else settings.compression,
                enable_idempotence=settings.idempotent or settings.transactional_id is not None,
                linger_ms=settings.linger_ms,
                max_request_size=settings.max_request_size,
                delivery_timeout_ms=settings.delivery_timeout_ms,
                request_timeout_ms=min(settings.request_timeout_ms, settings.delivery_timeout_ms // 2),
                max_block_ms=20_000,
                reconnect_backoff_max_ms=500,
                transactional_id=settings.transactional_id,
                transaction_timeout_ms=settings.transaction_timeout_ms,
                **way_in,
            )
            if settings.transactional_id is not None:
                self._producer.init_transactions()
        self._futures: list[Any] = []

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
        with failures():
            self._futures.append(
                self._producer.send(
                    topic, value=value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=list(headers)
                )
            )

    def flush(self) -> list[model.Delivery]:
        futures, self._futures = self._futures, []
        with failures():
            self._producer.flush(timeout=60)
            results = [future.get(timeout=60) for future in futures]
        return [model.Delivery(result.topic, result.partition, result.offset) for result in results]

    def begin(self) -> None:
        with failures():
            self._producer.begin_transaction()

    def commit(self) -> None:
        within_limit(self._producer.commit_transaction)
        self.flush()  # 3.0.12 also returns from the commit of records it has given up on: only their futures tell

    def abort(self) -> None:
        within_limit(self._producer.abort_transaction)

    def send_offsets(self, offsets: Mapping[tuple[str, int], int], group: object) -> None:
        wanted = {TopicPartition(*where): OffsetAndMetadata(offset, "", -1) for where, offset in offsets.items()}
        with failures():
            self._producer.send_offsets_to_transaction(wanted, group)

    def close(self) -> None:
        with failures():
            self._producer.close(timeout=5)


class Consumer(model.Consumer):
    """KafkaConsumer."""

    def __init__(self, bootstrap: str, settings: model.ConsumerSettings, way_in: Mapping[str, Any]) -> None:
        with failures():
            self._consumer = KafkaConsumer(
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
                reconnect_backoff_max_ms=500,
                consumer_timeout_ms=1_000,
                **way_in,
            )

    def assign(self, starts: Mapping[tuple[str, int], model.Start]) -> None:
        with failures():
            self._consumer.assign([TopicPartition(*where) for where in starts])
            for where, start in starts.items():
                if start == "beginning":
                    self._consumer.seek_to_beginning(TopicPartition(*where))
                elif start == "end":
                    self._consumer.seek_to_end(TopicPartition(*where))
                else:
                    self._consumer.seek(TopicPartition(*where), start)

    def subscribe(self, topics: Sequence[str]) -> None:
        with failures():
            # A 3.x group leader that joins before it knows a topic's partitions assigns none of them, and leaves it at that.
            for topic in topics:
                self._consumer.partitions_for_topic(topic)
            self._consumer.subscribe(topics=list(topics))

    def subscribe_pattern(self, pattern: str) -> None:
        with failures():
            self._consumer.topics()
            self._consumer.subscribe(pattern=pattern)

    def poll(self, timeout_s: float) -> list[model.Message]:
        with failures():
            polled = self._consumer.poll(timeout_ms=int(timeout_s * 1000))
        self._rejoin_if_stuck()
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

    def _rejoin_if_stuck(self) -> None:
        """Have a member of 3.0.12 go on that has forgotten that it joins again.

        It joins again when metadata come late. If the poll ends during that (there are records), the assignment that the
        leader then makes takes away the reason for joining, so no poll asks for the result, and it is rebalancing for ever.
        """
        coordinator = self._consumer._coordinator
        if coordinator is not None and coordinator.rebalance_in_progress() and not coordinator.need_rejoin():
            coordinator.request_rejoin()

    def seek(self, topic: str, partition: int, offset: int) -> None:
        with failures():
            self._consumer.seek(TopicPartition(topic, partition), offset)

    def position(self, topic: str, partition: int) -> int:
        with failures():
            return int(self._consumer.position(TopicPartition(topic, partition)))

    def assignment(self) -> frozenset[tuple[str, int]]:
        return frozenset((where.topic, where.partition) for where in self._consumer.assignment())

    def commit(self, offsets: Mapping[tuple[str, int], model.Committed]) -> None:
        with failures():
            self._consumer.commit(
                {TopicPartition(*where): OffsetAndMetadata(at.offset, at.metadata, -1) for where, at in offsets.items()}
            )

    def committed(self, topic: str, partition: int) -> model.Committed | None:
        with failures():
            at = self._consumer.committed(TopicPartition(topic, partition), metadata=True)
        return None if at is None else model.Committed(at.offset, at.metadata)

    def group(self) -> object:
        with failures():
            # 2.x has no such call, and takes the id alone.
            known = getattr(self._consumer, "group_metadata", None)
            return self._consumer.config["group_id"] if known is None else known()

    def watermarks(self, topic: str, partition: int) -> tuple[int, int]:
        where = TopicPartition(topic, partition)
        with failures():
            return self._consumer.beginning_offsets([where])[where], self._consumer.end_offsets([where])[where]

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        where = TopicPartition(topic, partition)
        with failures():
            found = self._consumer.offsets_for_times({where: timestamp_ms})[where]
        return None if found is None else int(found.offset)

    def close(self) -> None:
        with failures():
            self._consumer.close(autocommit=False)


class Admin(model.Admin):
    """KafkaAdminClient of 3.x."""

    def __init__(self, bootstrap: str, way_in: Mapping[str, Any]) -> None:
        with failures():
            self._admin = KafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=20_000, **way_in)

    def create_topic(
        self,
        name: str,
        partitions: int,
        replication_factor: int = 1,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        topic = {
            "num_partitions": partitions,
            "replication_factor": replication_factor,
            "configs": dict(configs or {}),
        }
        with failures():
            self._admin.create_topics({name: topic}, validate_only=validate_only)

    def delete_topic(self, name: str) -> None:
        with failures():
            self._admin.delete_topics([name])

    def list_topics(self) -> set[str]:
        with failures():
            return set(self._admin.list_topics())

    def describe_topic(self, name: str) -> model.TopicDescription:
        with failures():
            (topic,) = self._admin.describe_topics([name])
            if topic["error_code"]:
                raise kafka.errors.for_code(topic["error_code"])(name)
        return model.TopicDescription(
            topic["name"], {part["partition_index"]: part["leader_id"] for part in topic["partitions"]}
        )

    def create_partitions(self, topic: str, total: int) -> None:
        with failures():
            self._admin.create_partitions({topic: total})

    def describe_configs(self, kind: Literal["topic", "broker"], name: str) -> dict[str, model.ConfigEntry]:
        resource = ConfigResource(ConfigResourceType[kind.upper()], name)
        with failures():
            described = self._admin.describe_configs([resource], include_synonyms=True, config_filter="all")
        return {
            config: model.ConfigEntry(
                entry["value"],
                model.CONFIG_SOURCES[entry["config_source"]],
                entry["read_only"],
                entry["is_sensitive"],
                tuple(
                    (each["name"], each["value"], model.CONFIG_SOURCES[each["source"]]) for each in entry["synonyms"]
                ),
            )
            for config, entry in described[kind][name].items()
        }

    def alter_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs=dict(configs))
        with failures():
            # The client would first fill in every override that is not named: without that step this is plain AlterConfigs.
            results = self._admin._manager.run(self._admin._send_alter_configs_requests, [resource])
        check_altered(results["topic"][topic])

    def incremental_alter_configs(self, topic: str, changes: Iterable[tuple[str, str, str | None]]) -> None:
        configs = {name: (operation, value) for operation, name, value in changes}
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs=configs)
        with failures():
            results = self._admin.alter_configs([resource], incremental=True, raise_on_unknown=False)
        check_altered(results["topic"][topic])

    def list_groups(self) -> set[str]:
        with failures():
            return {group["group_id"] for group in self._admin.list_groups()}

    def describe_group(self, group_id: str) -> model.GroupDescription:
        with failures():
            group = self._admin.describe_groups([group_id])[group_id]
        members = {
            member["member_id"]: frozenset(
                (owned["topic"], partition)
                for owned in (member["member_assignment"] or {}).get("assigned_partitions", ())
                for partition in owned["partitions"]
            )
            for member in group["members"]
        }
        return model.GroupDescription(group_id, group["group_state"], group["protocol_type"], members)

    def delete_group(self, group_id: str) -> None:
        with failures():
            result = self._admin.delete_groups([group_id])[group_id]
        if result != "OK":
            raise model.ClientFailure(getattr(kafka.errors, result).errno, result)

    def group_offsets(self, group_id: str) -> dict[tuple[str, int], model.Committed]:
        with failures():
            offsets = self._admin.list_group_offsets([group_id])[group_id]
        return {
            (where.topic, where.partition): model.Committed(at.offset, at.metadata) for where, at in offsets.items()
        }

    def alter_group_offsets(self, group_id: str, offsets: Mapping[tuple[str, int], model.Committed]) -> None:
        wanted = {
            TopicPartition(*where): OffsetAndMetadata(at.offset, at.metadata, -1) for where, at in offsets.items()
        }
        with failures():
            for error in self._admin.alter_group_offsets(group_id, wanted).values():
                if error is not kafka.errors.NoError:
                    raise error()

    def delete_records(self, topic: str, partition: int, before_offset: int) -> int:
        where = TopicPartition(topic, partition)
        with failures():
            return int(self._admin.delete_records({where: before_offset})[where]["low_watermark"])

    def list_offset(self, topic: str, partition: int, spec: int) -> int:
        where = TopicPartition(topic, partition)
        with failures():
            return int(self._admin.list_partition_offsets({where: spec})[where].offset)

    def describe_cluster(self) -> model.ClusterDescription:
        with failures():
            cluster = self._admin.describe_cluster()
        return model.ClusterDescription(
            cluster["cluster_id"],
            cluster["controller_id"],
            {broker["broker_id"]: (broker["host"], broker["port"]) for broker in cluster["brokers"]},
        )

    def describe_log_dirs(self, topic: str) -> dict[int, int]:
        with failures():
            brokers = self._admin.describe_log_dirs([topic])
        return {
            part["partition_index"]: part["partition_size"]
            for broker in brokers
            for folder in broker["log_dirs"]
            for each in folder["topics"]
            for part in each["partitions"]
        }

    def close(self) -> None:
        with failures():
            self._admin.close()


def check_altered(result: str) -> None:
    """AlterConfigs results are 'OK' or the text of an error, such as '[Error 40] InvalidConfigurationError: ...'."""
    if result != "OK":
        number = result.partition("[Error ")[2].partition("]")[0]
        raise model.ClientFailure(int(number) if number.isdigit() else None, result)


def way_in(security: Security) -> dict[str, Any]:
    """The arguments of all three clients that say how they get in."""
    options: dict[str, Any] = {"security_protocol": security.protocol}
    if security.is_encrypted:
        options |= {"ssl_cafile": security.ca_file or None, "ssl_certfile": security.certificate_file or None}
    if "bootstrap_timeout_ms" in KafkaAdminClient.DEFAULT_CONFIG:
        options["bootstrap_timeout_ms"] = BOOTSTRAP_MS
    if security.mechanism is not None:
        options["sasl_mechanism"] = security.mechanism
    if security.mechanism == OAUTHBEARER:
        options["sasl_oauth_token_provider"] = token_provider(security.token)
    elif security.mechanism is not None:
        options |= {"sasl_plain_username": security.username, "sasl_plain_password": security.password}
    return options


def token_provider(text: str) -> Any:
    """What gives the client a token; it is declared elsewhere in 2.x."""
    try:
        from kafka.net.sasl.oauth import AbstractTokenProvider
    except ImportError:
        from kafka.sasl.oauth import AbstractTokenProvider

    class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return text

    return TokenProvider()


class Client(model.Client):
    """kafka-python 3.x."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._way_in: dict[str, Any] = {}

    def version(self) -> str:
        return str(kafka.__version__)

    def secure(self, security: Security) -> None:
        self._way_in = way_in(security)

    def producer(self, settings: model.ProducerSettings) -> model.Producer:
        return Producer(self._bootstrap, settings, self._way_in)

    def consumer(self, settings: model.ConsumerSettings) -> model.Consumer:
        return Consumer(self._bootstrap, settings, self._way_in)

    def admin(self) -> model.Admin:
        return Admin(self._bootstrap, self._way_in)
