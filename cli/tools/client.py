"""Clients of kafka-python from a bootstrap address and Kafka's own client properties.

Properties come from ``--command-config`` and then ``--command-property``. Names are Kafka's; a name of kafka-python with
dots in place of underscores goes, too. A property that the client at hand has no use for is ignored, because one file
serves producers, consumers and admin clients; one that none of them knows is an error. What says how a client gets in
(``security.protocol``, ``sasl.*``, ``ssl.*``) is read as Kafka's own clients do, stores and JAAS text among it.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import kafka.errors
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import ConfigResource
from kafka.protocol.admin import DescribeLogDirsRequest

from ...base import java_properties
from ...base.addresses import split_host_port, with_ports
from ...base.files import read_file
from ...base.wording import meant
from ...security.client_security import (
    ClientSecurity,
    is_about_security,
    kafka_python_options,
    read_client_security,
    security_names,
)
from .plain_probe import answers_plainly
from .running import ToolError, UsageError

_CONNECT_S = 5.0
_ATTEMPTS = 6
_PAUSE_S = 0.1
_UNREACHED = (kafka.errors.KafkaConnectionError, kafka.errors.NodeNotReadyError)
_BOOTSTRAP_MS = 10_000
_RENAMED = {
    "compression.type": "compression_type",
    "max.in.flight.requests.per.connection": "max_in_flight_requests_per_connection",
}
_IGNORED = frozenset(
    {
        "bootstrap.servers",
        "key.serializer",
        "value.serializer",
        "key.deserializer",
        "value.deserializer",
    }
)
_KNOWN = {*KafkaAdminClient.DEFAULT_CONFIG, *KafkaConsumer.DEFAULT_CONFIG, *KafkaProducer.DEFAULT_CONFIG}
_TEXT = frozenset({"client_id", "group_id", "transactional_id", "sasl_plain_username", "sasl_plain_password"})


class NoBrokerError(ToolError):
    """None of the addresses takes a connection."""


UNANSWERED = (NoBrokerError, kafka.errors.KafkaTimeoutError, *_UNREACHED)
"""What may pass by itself, as brokers start."""


class DescribedConfigs(dict[str, Any]):
    """The result of ``Admin.describe_configs``: kafka-python's entries by type and name of a resource. A resource has none if
    describing it was refused.
    """

    refused: Sequence[tuple[int, str | None]] = ()
    """The refusals, each with the error's code and the broker's words or None."""


class Admin(KafkaAdminClient):  # type: ignore[misc]
    """kafka-python's client, with what it lacks.

    Where any broker can respond, it tries another one if the one that it picked does not. It picks at random, and among the
    brokers is one that has died until its session has ended.

    It can name the broker without an id, which is the cluster's default, and has ``ask_controller``. It reports refusals of
    DescribeConfigs and DescribeLogDirs, which the client overlooks. It does not describe brokers that are not alive.
    """

    def __init__(self, **configs: Any) -> None:
        super().__init__(**configs)
        self._send_to = self._manager.send
        self._manager.send = self._send

    def _send(self, request: Any, node_id: int | None = None, request_timeout_ms: int | None = None) -> Awaitable[Any]:
        if node_id is None:
            return self._send_to_any(request, request_timeout_ms)
        answer: Awaitable[Any] = self._send_to(request, node_id, request_timeout_ms)
        return answer

    async def _send_to_any(self, request: Any, request_timeout_ms: int | None) -> Any:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return await self._send_to(request, None, request_timeout_ms)
            except _UNREACHED:
                if attempt == _ATTEMPTS:
                    raise
                await self._net.sleep(_PAUSE_S)

    async def _describe_cluster(self) -> Any:
        """As the client has it, without brokers that are fenced: registered at a quorum, and not alive."""
        described = await super()._describe_cluster()
        described["brokers"] = [each for each in described["brokers"] if not each.get("is_fenced")]
        return described

    def registered_brokers(self) -> list[Mapping[str, Any]]:
        """The brokers that are alive, as ``describe_cluster`` has them, and those of a quorum that are not (``is_fenced``)."""
        brokers: list[Mapping[str, Any]] = self._manager.run(super()._describe_cluster)["brokers"]
        return brokers

    @classmethod
    def _describe_configs_process_responses(cls, responses: Any, config_filter: Any = "modified") -> DescribedConfigs:
        """As the client has it, which says nothing of refusals."""
        described = DescribedConfigs(super()._describe_configs_process_responses(responses, config_filter))
        results = [result for response in responses for result in response.results]
        described.refused = [(each.error_code, each.error_message) for each in results if each.error_code]
        return described

    async def _async_describe_log_dirs(self, topic_partitions: Any = (), brokers: Any = None) -> Any:
        """As the client has it, which takes a refusal for an empty response. Raises KafkaError."""
        answers = []
        for node_id in brokers:
            answer = await self._manager.send(DescribeLogDirsRequest(topics=topic_partitions), node_id=node_id)
            if code := getattr(answer, "error_code", 0):
                raise kafka.errors.for_code(code)()
            answers.append({"broker": node_id, "log_dirs": [result.to_dict() for result in answer.results]})
        return answers

    def folders(self, broker_id: int, partitions: Mapping[str, Sequence[int]] | None = None) -> list[Mapping[str, Any]]:
        """A broker's log directories, with these partitions, or all. Raises ToolError when it is not reached, KafkaError."""
        try:
            (told,) = self.describe_log_dirs(partitions, brokers=[broker_id])
        except (*_UNREACHED, kafka.errors.UnknownBrokerIdError) as error:
            raise ToolError(
                f"broker {broker_id} is not reached ({error}); if it has gone, the others learn that when its session has "
                "ended: try again in a moment"
            ) from None
        folders: list[Mapping[str, Any]] = told["log_dirs"]
        return folders

    def knows(self, request: Any) -> bool:
        """Whether the broker that was met first takes such requests."""
        try:
            self._manager.broker_version_data.api_version(request)
        except kafka.errors.IncompatibleBrokerVersion:
            return False
        return True

    def ask(self, request: Any, broker_id: int | None = None) -> Any:
        """A broker's response to a request, whichever broker that is if none is named. Raises IncompatibleBrokerVersion."""
        return self._manager.run(self._send, request, broker_id)

    def ask_each(self, requests: Mapping[int, Any]) -> dict[int, Any]:
        """The responses of several brokers, which are asked at the same time; in place of a response what it failed with."""
        return dict(self._manager.run(self._ask_each, requests))

    async def _ask_each(self, requests: Mapping[int, Any]) -> dict[int, Any]:
        sent: dict[int, Any] = {}
        for broker_id, request in requests.items():
            try:
                sent[broker_id] = self._send_to(request, broker_id)
            except kafka.errors.KafkaError as error:
                sent[broker_id] = error
        for broker_id, answer in sent.items():
            if not isinstance(answer, Exception):
                try:
                    sent[broker_id] = await answer
                except kafka.errors.KafkaError as error:
                    sent[broker_id] = error
        return sent

    def coordinator(self, group: str) -> int:
        """The broker that coordinates a group. Raises KafkaError."""
        found: Mapping[str, int] = self._manager.run(self._find_coordinator_ids, [group])
        return found[group]

    def ask_controller(self, request: Any, errors: Callable[[Any], list[Any]] | None = None) -> Any:
        """The controller's response to one of kafka-python's requests or a ``WireRequest``; ``errors`` finds those in a response.

        An error in it is the caller's, except for NOT_CONTROLLER: then the broker that is it by now is asked. Raises ToolError
        when the controller is not reached, IncompatibleBrokerVersion when it does not know such requests.
        """

        def error(answer: Any) -> list[Any]:
            return [kafka.errors.for_code(answer.error_code)]

        return self._manager.run(self._send_request_to_controller, request, errors or error, False)

    async def _send_request_to_controller(self, *arguments: Any, **named: Any) -> Any:
        """As the client has it, which says RuntimeError when no broker is the controller, and asks one that has gone for ever.

        After a failure the next request asks who the controller is by then. Raises ToolError, KafkaError.
        """
        ask = super()._send_request_to_controller
        try:
            try:
                return await ask(*arguments, **named)
            except kafka.errors.UnknownBrokerIdError:
                # It has gone, or has come since this client was told of the brokers.
                self._controller_id = None
                await self._manager.cluster.refresh_metadata()
                return await ask(*arguments, **named)
        except RuntimeError:
            raise ToolError(
                "no broker is the controller just now: one is being elected, or none reaches ZooKeeper; try again in a moment"
            ) from None
        except (*_UNREACHED, kafka.errors.UnknownBrokerIdError) as error:
            self._controller_id = None
            raise ToolError(
                f"the controller is not reached ({error}); if its broker is down, another one takes over when its "
                "session ends: try again in a moment"
            ) from None
        except kafka.errors.RequestTimedOutError:
            self._controller_id = None
            raise

    @staticmethod
    def _group_config_resources(resources: Sequence[ConfigResource]) -> tuple[Any, Any]:
        default = [resource for resource in resources if resource.name == ""]
        by_broker, others = KafkaAdminClient._group_config_resources([r for r in resources if r.name != ""])
        return by_broker, [*others, *default]


@dataclasses.dataclass(frozen=True)
class ClusterConnection:
    """Where the cluster is, and how to talk to it."""

    bootstrap_server: str
    config_file: Path | None = None
    properties: tuple[str, ...] = ()

    @classmethod
    def of(cls, bootstrap_server: str, config_file: Path | None, properties: Sequence[str] | None) -> ClusterConnection:
        """From the options of a subcommand."""
        return cls(bootstrap_server, config_file, tuple(properties or ()))

    def admin(self, limit_s: float | None = None) -> Admin:
        """An admin client, connected. With a limit it gives up early, as do its requests. Raises ToolError."""
        limits = {}
        if limit_s is not None:
            limits = dict.fromkeys(("bootstrap_timeout_ms", "request_timeout_ms"), round(limit_s * 1000))
        admin: Admin = self._made(Admin, self.options(KafkaAdminClient, limit_s or _CONNECT_S) | limits)
        return admin

    def consumer(self, **chosen: Any) -> Any:
        """A KafkaConsumer; ``chosen`` are stronger than the properties. Raises ToolError."""
        return self._made(KafkaConsumer, self.options(KafkaConsumer) | chosen)

    def producer(self, **chosen: Any) -> Any:
        """A KafkaProducer; ``chosen`` are stronger than the properties. Raises ToolError."""
        return self._made(KafkaProducer, self.options(KafkaProducer) | chosen)

    def _made(self, client: Callable[..., Any], options: dict[str, Any]) -> Any:
        """A client with these options, connected. Raises ToolError where it is known why it is not let in."""
        try:
            return client(**options)
        except kafka.errors.KafkaTimeoutError:
            if not goes_by_proxy(options):
                check_reachable(self.bootstrap_server, options=options, has_failed=True)
            raise

    def options(self, client: Any, connect_s: float = _CONNECT_S) -> dict[str, Any]:
        """Keyword arguments of a client class. Raises ToolError when no server listens at the address, or lets this client in."""
        given = client_options(self._properties())
        if not goes_by_proxy(given):
            check_reachable(self.bootstrap_server, connect_s, given)
        defaults = {"bootstrap_timeout_ms": _BOOTSTRAP_MS, "reconnect_backoff_max_ms": 1_000, "client_id": "ottla"}
        known = {name: value for name, value in given.items() if name in client.DEFAULT_CONFIG}
        return {**defaults, **known, "bootstrap_servers": _addresses(self.bootstrap_server)}

    def security_options(self) -> dict[str, Any]:
        """The options of kafka-python that say how a client gets in, among others. Raises UsageError."""
        return client_options(self._properties())

    def security(self) -> ClientSecurity:
        """How clients of the project's own get in. Raises UsageError."""
        given = self._properties()
        client_options(given)  # whether its names are known
        try:
            return read_client_security(given, read_file)
        except ValueError as error:
            raise UsageError(str(error)) from None

    def _properties(self) -> dict[str, str]:
        properties = {} if self.config_file is None else _read(self.config_file)
        return properties | pairs("--command-property", self.properties)


def _read(file: Path) -> dict[str, str]:
    return java_properties.read(file)


def check_properties(file: Path) -> None:
    """Raises UsageError for client properties that make no sense, OSError for a file that cannot be read."""
    client_options(_read(file))


def pairs(option: str, texts: Sequence[str] | None) -> dict[str, str]:
    """``NAME=VALUE`` strings as a mapping. Raises UsageError."""
    found = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{option} takes NAME=VALUE, not {text!r}")
        found[name.strip()] = value
    return found


def client_options(properties: Mapping[str, str]) -> dict[str, Any]:
    """kafka-python's settings for Kafka's client properties. Raises UsageError for a name that is neither's, and for stores and
    passwords that make no sense."""
    options: dict[str, Any] = {}
    about_security = {name: value for name, value in properties.items() if is_about_security(name)}
    if about_security:
        try:
            options |= kafka_python_options(read_client_security(about_security, read_file))
        except ValueError as error:
            raise UsageError(str(error)) from None
    for name, value in properties.items():
        if name not in _IGNORED and name not in about_security:
            attribute = _RENAMED.get(name, name.replace(".", "_"))
            if attribute not in _KNOWN:
                names = {known.replace("_", ".") for known in _KNOWN} | security_names()
                raise UsageError(f"no client setting is named {name}{meant(name, names)}")
            options[attribute] = _value(attribute, value)
    return options


def _value(attribute: str, text: str) -> Any:
    text = text.strip()
    if attribute in _TEXT:
        return text
    if attribute == "compression_type" and text == "none":
        return None
    if attribute == "acks" and text == "all":
        return text
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    return text


def goes_by_proxy(options: Mapping[str, Any]) -> bool:
    """Whether kafka-python's options name a proxy, which only its clients use."""
    return bool(options.get("proxy_url") or options.get("socks5_proxy"))


def check_reachable(
    bootstrap_server: str,
    connect_s: float = _CONNECT_S,
    options: Mapping[str, Any] | None = None,
    *,
    has_failed: bool = False,
) -> None:
    """Raises NoBrokerError at once when none of the addresses takes a connection, ToolError when the first that does refuses a
    client with kafka-python's ``options`` for good; the clients would try for long. Without options only the connection is tried.

    ``has_failed``: such a client has tried for long.
    """
    why = "no address given"
    for host, port in map(split_host_port, _addresses(bootstrap_server)):
        connect = functools.partial(socket.create_connection, (host, port), timeout=connect_s)
        try:
            if options is None:
                connect().close()
                return
            is_plain = options.get("security_protocol", "PLAINTEXT") == "PLAINTEXT"
            if has_failed or not is_plain or not answers_plainly(connect):
                from .entrance import check_entrance  # it loads parts of the codec

                check_entrance(connect, host, port, options, has_failed=has_failed)
            return
        except OSError as error:
            why = (error.strerror or str(error)).lower()
    raise NoBrokerError(
        f"no broker answers at {servers(bootstrap_server)} ({why}); "
        "start one with 'ottla serve', or name another with --bootstrap-server"
    )


def servers(bootstrap_server: str) -> str:
    """The addresses, each with its port. Raises UsageError."""
    try:
        return with_ports(bootstrap_server)
    except ValueError as error:
        raise UsageError(f"--bootstrap-server: {error}") from None


def _addresses(bootstrap_server: str) -> list[str]:
    return list(filter(None, servers(bootstrap_server).split(",")))
