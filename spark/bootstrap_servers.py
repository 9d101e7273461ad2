"""The brokers of a job and the client settings for Spark, kafka-python and confluent-kafka, also in tasks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..base import java_properties
from ..base.addresses import with_ports
from ..base.files import read_file
from ..security.client_security import (
    is_about_security,
    kafka_python_options,
    librdkafka_options,
    read_client_security,
)
from .failures import JobError


class BootstrapServers(str):
    """The addresses of brokers, as a str, with Kafka's client properties for connecting.

    Only properties about security are kept. They are sent to tasks, too, and files that they name are read there.
    """

    properties: Mapping[str, str]

    def __new__(cls, addresses: str, properties: Mapping[str, str] | None = None) -> BootstrapServers:
        made = super().__new__(cls, addresses)
        made.properties = {name: value for name, value in (properties or {}).items() if is_about_security(name)}
        return made


def read_brokers(addresses: str, config: Path | None) -> BootstrapServers:
    """Addresses, each with its port, and a file of client properties. Raises JobError."""
    properties: dict[str, str] = {}
    try:
        if config is not None:
            properties = java_properties.read(config)
        brokers = BootstrapServers(with_ports(addresses), properties)
        read_client_security(brokers.properties, read_file)
    except OSError as error:
        raise JobError(f"cannot read {config}: {error.strerror}") from None
    except ValueError as error:
        raise JobError(f"{config}: {error}" if properties else str(error)) from None
    return brokers


def _properties(servers: str) -> Mapping[str, str]:
    return servers.properties if isinstance(servers, BootstrapServers) else {}


def spark_options(servers: str) -> dict[str, str]:
    """Options of Spark's ``kafka`` format."""
    return {
        "kafka.bootstrap.servers": str(servers),
        **{f"kafka.{name}": each for name, each in _properties(servers).items()},
    }


def kafka_python(servers: str) -> dict[str, Any]:
    """Arguments of kafka-python's clients. Raises JobError."""
    return {"bootstrap_servers": servers.split(","), **_read(servers, kafka_python_options)}


def confluent(servers: str) -> dict[str, Any]:
    """Settings of confluent-kafka's clients. Raises JobError."""
    return {"bootstrap.servers": str(servers), **_read(servers, librdkafka_options)}


def _read(servers: str, options: Any) -> dict[str, Any]:
    properties = _properties(servers)
    try:
        found: dict[str, Any] = options(read_client_security(properties, read_file)) if properties else {}
    except (ValueError, OSError) as error:
        raise JobError(str(error)) from None
    return found
