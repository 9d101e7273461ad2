"""Loads over TLS: brokers of their own, with a second listener and the same certificates, and a client that checks them.

Each run has a warm-up that isn't counted, because these brokers are started for it.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path

from ottla.security.tls_certificates import issue, make_authority

from .brokers import Kind, Ottla, RunningBroker, free_port
from .rows import Figure, Lifecycle, at_least, at_most, worker

_RECORDS, _SIZE = 250_000, 1024
_WARM_UP = 4


class WithTls:
    """A kind of broker that listens for TLS on one more port."""

    def __init__(self, kind: Kind) -> None:
        self.name = kind.name
        self.ports = kind.ports
        self._kind = kind
        self.tls_port = free_port()

    def prepare(self, folder: Path, port: int) -> list[str]:
        now = datetime.datetime.now(datetime.UTC)
        authority = make_authority("bench", 30, now)
        (folder / "ca.pem").write_text(authority.certificate)
        (folder / "broker.pem").write_text(issue(authority, "broker", 30, now, hosts=["127.0.0.1"]).key_store)
        settings = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(folder / "broker.pem")}
        listener = f",SSL://127.0.0.1:{self.tls_port}"
        command = self._kind.prepare(folder, port)
        if isinstance(self._kind, Ottla):
            at = command.index("--listen")
            del command[at : at + 2]  # it would be stronger
            settings["listeners"] = f"PLAINTEXT://127.0.0.1:{port}{listener}"
            return [*command, *(word for each in settings.items() for word in ("--override", "=".join(each)))]
        properties = folder / "server.properties"
        lines = []
        for line in properties.read_text().splitlines():
            if line.startswith(("listeners=", "advertised.listeners=")):
                line += listener
            if line.startswith("listener.security.protocol.map="):
                line += ",SSL:SSL"
            lines.append(line)
        properties.write_text("\n".join([*lines, *("=".join(each) for each in settings.items())]))
        return command


def _over_tls(kind: Kind, folder: Path) -> Iterator[Figure]:
    secured = WithTls(kind)
    with RunningBroker(secured, folder) as broker:
        address = f"127.0.0.1:{secured.tls_port}"
        client = json.dumps({"security.protocol": "ssl", "ssl.ca.location": str(folder / "ca.pem")})
        for partitions in (1, 12):
            for is_counted in (False, True):
                topic = f"tls-{partitions}-{is_counted}"
                records = _RECORDS if is_counted else _RECORDS // _WARM_UP
                broker.create_topic(topic, partitions)
                for action in ("produce", "consume"):
                    plural = "" if partitions == 1 else "s"
                    row = f"{action} over TLS, confluent-kafka, {_SIZE} B, {partitions} partition{plural}"
                    with broker.measured(row) as span:
                        done = worker("confluent_client", action, address, topic, partitions, records, _SIZE, client)
                    if is_counted:
                        yield Figure(row, "MB/s", done["records_s"] * _SIZE / 1e6, at_least(1.0), span.noise)
                        cost = span.broker_cpu_s / (records * _SIZE / 1e9)
                        yield Figure(row, "CPU s/GB", cost, at_most(0.8), span.noise)
                broker.delete_topic(topic)


OVER_TLS = [Lifecycle("over TLS", _over_tls)]
