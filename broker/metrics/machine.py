"""Metrics of all brokers of a machine at one address (``ottla serve --brokers``): a scrape of one scrapes the others.

Every sample gets a label ``broker`` with the id of the broker that it is of. A broker that does not answer is left out, and
``ottla_machine_broker_up`` says so.
"""

from __future__ import annotations

import functools
import http.client
from collections.abc import Mapping, Sequence

import trio
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families

from ...base.addresses import split_host_port
from ...base.seams import Workers
from ...base.settings import SettingError

LABEL = "broker"
PROPERTY = "machine.metrics"

_SECONDS = 5.0
"""How long a broker may take; a scrape has 10 s, by Prometheus' default."""


def parse_others(entries: Sequence[str]) -> dict[int, tuple[str, int]]:
    """Where the metrics of other brokers are, from ``ID@HOST:PORT`` each. Raises SettingError."""
    others = {}
    for entry in entries:
        number, at, address = entry.partition("@")
        try:
            if not at or not number.isdecimal():
                raise ValueError("ID@HOST:PORT is expected")
            others[int(number)] = split_host_port(address)
        except ValueError as error:
            raise SettingError(PROPERTY, entry, str(error)) from None
    return others


class MachineMetrics:
    """``own_id`` is the broker that is scraped, ``others`` are where the others' metrics are."""

    def __init__(self, own_id: int, others: Mapping[int, tuple[str, int]], workers: Workers) -> None:
        self._own_id = own_id
        self._others = others
        self._workers = workers

    async def joined(self, own: Sequence[Metric]) -> list[Metric]:
        """The families of all brokers, from those of this one."""
        found: dict[int, Sequence[Metric] | None] = {self._own_id: own}

        async def ask(broker_id: int, address: tuple[str, int]) -> None:
            found[broker_id] = await self._workers.run(functools.partial(_read, *address))

        async with trio.open_nursery() as nursery:
            for broker_id, address in self._others.items():
                nursery.start_soon(ask, broker_id, address)
        joined: dict[str, Metric] = {}
        up = GaugeMetricFamily("ottla_machine_broker_up", "Whether a broker of this machine has sent its metrics.")
        for broker_id, families in sorted(found.items()):
            up.add_sample(up.name, {LABEL: str(broker_id)}, float(families is not None))
            for family in families or ():
                _add(joined, family, str(broker_id))
            await trio.lowlevel.checkpoint()
        return [up, *joined.values()]


def _add(joined: dict[str, Metric], family: Metric, broker: str) -> None:
    known = joined.get(family.name)
    if known is None:
        known = joined[family.name] = Metric(family.name, family.documentation, family.type, family.unit)
    known.samples += [sample._replace(labels={**sample.labels, LABEL: broker}) for sample in family.samples]


def _read(host: str, port: int) -> Sequence[Metric] | None:
    """The families of a broker, in a worker; None where it does not tell them."""
    connection = http.client.HTTPConnection(host, port, timeout=_SECONDS)
    try:
        connection.request("GET", "/metrics", headers={"accept": "text/plain; version=0.0.4"})
        response = connection.getresponse()
        text = response.read().decode()
        return list(text_string_to_metric_families(text)) if response.status == http.HTTPStatus.OK else None
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
