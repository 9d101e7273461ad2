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
    """Identity, listeners, data folder, limits on connections and requests; where a default isn't Kafka's, the text says why."""

    node_id: int = setting(
        "node.id",
        default=1,
        at_least=0,
        doc="The id of this broker; broker.id is another name for it. Where neither is given it is the one in the data folder; "
        "for a new folder it is 1, or with zookeeper.connect the next free id (broker.id.generation.enable).",
    )
    broker_id: int = setting(
        "broker.id", default=-1, at_least=-1, doc="The older name of node.id; node.id wins where both are given."
    )
    broker_id_generation_enable: bool = setting(
        "broker.id.generation.enable",
        default=True,
        doc="Whether a broker with zookeeper.connect that is given no id gets one above reserved.broker.max.id.",
    )
    reserved_broker_max_id: int = setting(
        "reserved.broker.max.id",
        default=1000,
        at_least=0,
        doc="The largest id that may be given with zookeeper.connect and broker.id.generation.enable; ids above it are for "
        "brokers that are given none.",
    )
    listeners: str = setting(
        "listeners",
        default="PLAINTEXT://127.0.0.1:9092",
        dynamic=True,
        doc="Addresses to listen on, NAME://HOST:PORT with commas between. Ottla's default is the loopback address only.",
    )
    machine_listener: str | None = setting(
        "machine.listener",
        default=None,
        doc="HOST:PORT at which every broker of a machine listens, beside the first of its own listeners, and as that one; for "
        "ottla serve --brokers, which sets it. Ottla's own property.",
    )
    advertised_listeners: str | None = setting(
        "advertised.listeners",
        default=None,
        dynamic=True,
        doc="The addresses that clients are told to connect to, NAME://HOST:PORT with commas between; those of listeners where "
        "not given.",
    )
    listener_security_protocol_map: str = setting(
        "listener.security.protocol.map",
        default="PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        dynamic=True,
        doc="Security protocol of each listener name, NAME:PROTOCOL with commas between.",
    )
    controller_listener_names: tuple[str, ...] = setting(
        "controller.listener.names",
        default=(),
        doc="Names of the controllers' listeners in a cluster of KRaft, the first one for nodes that reach them: PLAINTEXT where "
        "listener.security.protocol.map is left at its default. A broker by itself serves them as any other.",
    )
    inter_broker_listener_name: str | None = setting(
        "inter.broker.listener.name",
        default=None,
        doc="Name of the listener that brokers use among themselves, the same on every broker; if not given, the listener named "
        "like security.inter.broker.protocol, or else the first one with that protocol.",
    )
    security_inter_broker_protocol: str = setting(
        "security.inter.broker.protocol",
        default="PLAINTEXT",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        doc="Security protocol between brokers, where inter.broker.listener.name is not given.",
    )
    control_plane_listener_name: str | None = setting(
        "control.plane.listener.name",
        default=None,
        doc="Name of the listener that the controller connects to, the same on every broker; if not given, the one that brokers "
        "use among themselves.",
    )
    rack: str | None = setting(
        "broker.rack", default=None, doc="The rack of this broker, which clients are told (Metadata)."
    )
    metrics_listener: str | None = setting(
        "metrics.listener",
        default=None,
        doc="HOST:PORT where metrics (/metrics) and health (/healthz, /readyz) are served over HTTP; Ottla's own property.",
    )
    machine_metrics: tuple[str, ...] = setting(
        "machine.metrics",
        default=(),
        doc="Other brokers of this machine whose metrics are served at metrics.listener as well, ID@HOST:PORT each; for "
        "ottla serve --brokers, which sets it. Ottla's own property.",
    )
    console_listener: str | None = setting(
        "console.listener",
        default=None,
        doc="HOST:PORT where ottla serve serves the console, for a browser; Ottla's own property.",
    )
    console_allow_writes: bool = setting(
        "console.allow.writes",
        default=False,
        doc="Whether the console has pages that change something; without it nothing can be changed by it. Ottla's own "
        "property.",
    )
    console_avro_schemas: tuple[str, ...] = setting(
        "console.avro.schemas",
        default=(),
        doc="Files of Avro schemas with which the console decodes records: FILE, or TOPIC=FILE for those of one topic; Ottla's "
        "own property.",
    )
    console_schema_registry_url: str | None = setting(
        "console.schema.registry.url",
        default=None,
        doc="http or https address of a schema registry, from which the console has the Avro schemas of records that name one; "
        "Ottla's own property.",
    )
    console_connect_urls: tuple[str, ...] = setting(
        "console.connect.urls",
        default=(),
        doc="http or https addresses of workers of Kafka Connect, whose connectors the console shows; Ottla's own property.",
    )
    log_dir: str = setting("log.dir", default="data", doc="The data folder, where log.dirs is not given.")
    log_dirs: tuple[str, ...] = setting(
        "log.dirs", default=(), doc="The data folders; partitions are spread over them."
    )
    socket_request_max_bytes: int = setting(
        "socket.request.max.bytes",
        default=104857600,
        at_least=1,
        doc="The largest request; a larger one closes the connection.",
    )
    request_max_entries: int = setting(
        "ottla.request.max.entries",
        default=50_000,
        at_least=1000,
        dynamic=True,
        doc="The most topics, partitions and the like in a client's request above 256 KiB; more close the connection.",
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
        doc="How many connections may wait in the kernel to be accepted. Kafka's default is 50, too few for a burst of clients: "
        "the kernel drops the others, and each client tries again after a second or later. The kernel holds at most "
        "net.core.somaxconn.",
    )
    max_connections: int = setting(
        "max.connections",
        default=2147483647,
        at_least=0,
        dynamic=True,
        doc="Connections at a time, of all listeners together; with the prefix of a listener, of that one. A further one waits "
        "until another ends. At the listener that brokers use among themselves it does not wait for the limit of all: a client's "
        "connection is closed for it.",
    )
    max_connections_per_ip: int = setting(
        "max.connections.per.ip",
        default=2147483647,
        at_least=0,
        dynamic=True,
        doc="Connections at a time from one address; a further one is closed at once.",
    )
    max_connections_per_ip_overrides: str = setting(
        "max.connections.per.ip.overrides",
        default="",
        dynamic=True,
        check=_check_connection_overrides,
        doc="Other numbers for some hosts, HOST:NUMBER with commas between.",
    )
    controlled_shutdown_enable: bool = setting(
        "controlled.shutdown.enable",
        default=True,
        doc="Whether a broker of a cluster has its leaderships moved to other brokers before it stops.",
    )
    controlled_shutdown_max_retries: int = setting(
        "controlled.shutdown.max.retries",
        default=3,
        at_least=1,
        doc="How often the controller is asked to move the leaderships before the broker stops all the same.",
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
        doc="How long the answer to a failed authentication is held back, before the connection is closed.",
    )
    connections_max_idle_ms: int = setting(
        "connections.max.idle.ms",
        kind=ConfigValueType.LONG,
        default=600000,
        doc="A connection that sends nothing for so long is closed; -1: never.",
    )
