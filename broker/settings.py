"""Settings of the process itself: identity, listeners, log directories, limits on connections and requests."""

from __future__ import annotations

import re

from ..base.addresses import is_address
from ..base.settings import ConfigValueType, Settings, setting

_HOST_NAME = re.compile(r"[A-Za-z0-9._-]{1,253}")


def parse_connection_overrides(text: str) -> dict[str, int]:
    """Connections by host, of a ``max.connections.per.ip.overrides`` value. Raises ValueError."""
    overrides = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        host, separator, number = item.rpartition(":")
        if not separator or not host or not number.strip().isdecimal():
            raise ValueError(f"{item!r} is not HOST:NUMBER")
        host = host.strip()
        if not _HOST_NAME.fullmatch(host) and not is_address(host.strip("[]")):
            raise ValueError(f"{host!r} is neither an address nor a host name")
        overrides[host] = int(number)
    return overrides


def _check_connection_overrides(text: str) -> str | None:
    try:
        parse_connection_overrides(text)
    except ValueError as error:
        return str(error)
    return None


class BrokerSettings(Settings):
    """Identity, listeners, log directories, limits on connections and requests. The text explains defaults that differ from
    Kafka's."""

    node_id: int = setting(
        "node.id",
        default=1,
        at_least=0,
        doc="The id of this broker; broker.id is another name for it. By default it is the id in the log "
        "directory. A new directory gets 1, or with zookeeper.connect the next free id "
        "(broker.id.generation.enable).",
    )
    broker_id: int = setting(
        "broker.id", default=-1, at_least=-1, doc="The older name of node.id, which takes precedence."
    )
    broker_id_generation_enable: bool = setting(
        "broker.id.generation.enable",
        default=True,
        doc="Whether a broker with zookeeper.connect and without an id gets one above reserved.broker.max.id.",
    )
    reserved_broker_max_id: int = setting(
        "reserved.broker.max.id",
        default=1000,
        at_least=0,
        doc="Largest configured id with zookeeper.connect and broker.id.generation.enable. Larger ids are generated.",
    )
    listeners: str = setting(
        "listeners",
        default="PLAINTEXT://127.0.0.1:9092",
        dynamic=True,
        doc="Addresses to listen on, NAME://HOST:PORT separated by commas. Ottla's default is the loopback "
        "address only.",
    )
    machine_listener: str | None = setting(
        "machine.listener",
        default=None,
        doc="HOST:PORT at which every broker of a machine listens, with the settings of its first listener. "
        "ottla serve --brokers sets it. Ottla's own property.",
    )
    advertised_listeners: str | None = setting(
        "advertised.listeners",
        default=None,
        dynamic=True,
        doc="Addresses that clients connect to, NAME://HOST:PORT separated by commas; by default those of listeners.",
    )
    listener_security_protocol_map: str = setting(
        "listener.security.protocol.map",
        default="PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        dynamic=True,
        doc="Security protocol of each listener name, NAME:PROTOCOL separated by commas.",
    )
    controller_listener_names: tuple[str, ...] = setting(
        "controller.listener.names",
        default=(),
        doc="Names of the controllers' listeners in a KRaft cluster. Nodes connect to the first one. The "
        "protocol is PLAINTEXT unless listener.security.protocol.map is set. A single broker serves them "
        "like other listeners.",
    )
    inter_broker_listener_name: str | None = setting(
        "inter.broker.listener.name",
        default=None,
        doc="Name of the listener for brokers, the same on every broker. By default it is the listener named "
        "like security.inter.broker.protocol, or else the first one with that protocol.",
    )
    security_inter_broker_protocol: str = setting(
        "security.inter.broker.protocol",
        default="PLAINTEXT",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        doc="Security protocol between brokers, if inter.broker.listener.name is not set.",
    )
    control_plane_listener_name: str | None = setting(
        "control.plane.listener.name",
        default=None,
        doc="Name of the listener that the controller connects to, the same on every broker; by default the "
        "listener for brokers.",
    )
    rack: str | None = setting(
        "broker.rack", default=None, doc="The rack of this broker, which Metadata reports to clients."
    )
    metrics_listener: str | None = setting(
        "metrics.listener",
        default=None,
        doc="HOST:PORT where metrics (/metrics) and health (/healthz, /readyz) are served over HTTP; Ottla's own property.",
    )
    machine_metrics: tuple[str, ...] = setting(
        "machine.metrics",
        default=(),
        doc="Other brokers of this machine whose metrics metrics.listener serves, ID@HOST:PORT each. ottla serve "
        "--brokers sets it. Ottla's own property.",
    )
    console_listener: str | None = setting(
        "console.listener",
        default=None,
        doc="HOST:PORT of the console, which ottla serve serves to browsers. Ottla's own property.",
    )
    console_allow_writes: bool = setting(
        "console.allow.writes",
        default=False,
        doc="Whether the console can make changes. Ottla's own property.",
    )
    console_avro_schemas: tuple[str, ...] = setting(
        "console.avro.schemas",
        default=(),
        doc="Files of Avro schemas with which the console decodes records: FILE, or TOPIC=FILE for one topic. "
        "Ottla's own property.",
    )
    console_schema_registry_url: str | None = setting(
        "console.schema.registry.url",
        default=None,
        doc="http or https address of a schema registry, from which the console reads the Avro schemas that "
        "records name. Ottla's own property.",
    )
    console_connect_urls: tuple[str, ...] = setting(
        "console.connect.urls",
        default=(),
        doc="http or https addresses of Kafka Connect's workers. The console shows their connectors. Ottla's own property.",
    )
    log_dir: str = setting("log.dir", default="data", doc="The log directory, if log.dirs is not set.")
    log_dirs: tuple[str, ...] = setting(
        "log.dirs", default=(), doc="The log directories. Partitions are spread over them."
    )
    socket_request_max_bytes: int = setting(
        "socket.request.max.bytes",
        default=104857600,
        at_least=1,
        doc="Largest request. A larger one closes the connection.",
    )
    request_max_entries: int = setting(
        "ottla.request.max.entries",
        default=50_000,
        at_least=1000,
        dynamic=True,
        doc="Most topics, partitions and other entries in a client's request above 256 KiB. More close the connection.",
    )
    socket_send_buffer_bytes: int = setting(
        "socket.send.buffer.bytes",
        default=102400,
        doc="SO_SNDBUF of a connection; -1 leaves it to the kernel, which tunes it. Large responses get up to 524288.",
    )
    socket_receive_buffer_bytes: int = setting(
        "socket.receive.buffer.bytes",
        default=-1,
        doc="SO_RCVBUF of a connection; -1 leaves it to the kernel, which tunes it.",
    )
    socket_listen_backlog_size: int = setting(
        "socket.listen.backlog.size",
        default=1024,
        at_least=1,
        doc="Most connections that wait in the kernel to be accepted, up to net.core.somaxconn. Kafka's default "
        "of 50 is too few for a burst of clients: the kernel drops the others, which retry after a second or "
        "later.",
    )
    max_connections: int = setting(
        "max.connections",
        default=2147483647,
        at_least=0,
        dynamic=True,
        doc="Most connections, of all listeners together, or of one with its prefix. Further connections wait. A "
        "connection to the listener for brokers does not wait for the total limit: it replaces a client's "
        "connection.",
    )
    max_connections_per_ip: int = setting(
        "max.connections.per.ip",
        default=2147483647,
        at_least=0,
        dynamic=True,
        doc="Most connections from one address. Further ones are closed at once.",
    )
    max_connections_per_ip_overrides: str = setting(
        "max.connections.per.ip.overrides",
        default="",
        dynamic=True,
        check=_check_connection_overrides,
        doc="Limits for single hosts, HOST:NUMBER separated by commas.",
    )
    controlled_shutdown_enable: bool = setting(
        "controlled.shutdown.enable",
        default=True,
        doc="Whether the leaderships of a broker move to other brokers before it stops.",
    )
    controlled_shutdown_max_retries: int = setting(
        "controlled.shutdown.max.retries",
        default=3,
        at_least=1,
        doc="Number of requests to the controller to move leaderships. After them the broker stops.",
    )
    controlled_shutdown_retry_backoff_ms: int = setting(
        "controlled.shutdown.retry.backoff.ms",
        kind=ConfigValueType.LONG,
        default=5000,
        at_least=0,
        doc="Time between two of these requests.",
    )
    connection_failed_authentication_delay_ms: int = setting(
        "connection.failed.authentication.delay.ms",
        default=100,
        at_least=0,
        doc="Delay of the response to a failed authentication, before the connection closes.",
    )
    connections_max_idle_ms: int = setting(
        "connections.max.idle.ms",
        kind=ConfigValueType.LONG,
        default=600000,
        doc="Time after which an idle connection is closed; -1: never.",
    )
