"""``ottla doctor``: the order of the checks, what they share, and the exit status.

Nothing is changed, but that ``--probe-clocks`` makes a topic and deletes it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import kafka.errors
import trio

from ....base.addresses import split_host_port
from ....base.errors import KafkaError
from ....base.seams import Clock, SystemClock
from ....security.client_security import ClientSecurity
from ....view.disk_space import DiskTrends
from ....view.findings import Severity
from ....view.rows import GroupRow
from ..client import ClusterConnection
from ..console_client import ConsoleClient
from ..responding import responding
from ..running import ToolError, UsageError
from . import broker_checks, certificates, clocks, cluster_checks, config_file, group_checks, machine
from .diagnosis import (
    Area,
    Diagnosis,
    DiagnosisLevel,
    exit_status,
    ok,
    print_as_json,
    print_page,
    problem,
    unknown,
)
from .examined import ExaminedCluster

_THIS_MACHINES = SystemClock()
_MOST_SECONDS = 60.0
"""A check of a large cluster ends after so long."""
_NO_ANSWER = "docs/troubleshooting.md#no-broker-answers"


@dataclasses.dataclass(frozen=True)
class DoctorOptions:
    """What to look at, beside the brokers."""

    config: Path | None = None
    """A broker's properties file on this machine."""
    console: str | None = None
    """Where an Ottla broker's console is."""
    watch_s: float = 0.0
    """After how long to look at groups and disks a second time; 0 for never."""
    probe_clocks: bool = False
    looks_at_brokers: bool = True


def doctor(
    connection: ClusterConnection,
    options: DoctorOptions,
    *,
    is_strict: bool,
    as_json: bool,
    clock: Clock = _THIS_MACHINES,
) -> int:
    """Print the page or the JSON; the exit status. ``clock`` is for the ages of transactions. Raises UsageError."""
    found = [] if options.config is None else config_file.examine(options.config)
    if options.looks_at_brokers:
        found += _of_brokers(connection, options, clock)
    if options.console is not None:
        found += _of_console(connection, options.console)
    order = list(Area)
    found.sort(key=lambda line: order.index(line.area))
    if as_json:
        print_as_json(found, is_strict=is_strict)
    else:
        print_page(found)
    return exit_status(found, is_strict=is_strict)


def _of_brokers(connection: ClusterConnection, options: DoctorOptions, clock: Clock) -> list[Diagnosis]:
    security = connection.security()
    logging.getLogger("ottla").setLevel(max(logging.ERROR, logging.getLogger().level))
    examination = Examination(connection, security, options, clock)
    try:
        trio.run(examination.run)
    except UsageError:
        raise
    except ToolError as error:
        why = str(error)
        return [problem(Area.BROKERS, why[0].upper() + why[1:], _NO_ANSWER)]
    return examination.found


class Examination:
    """One look at a cluster. ``found`` has the lines so far."""

    def __init__(
        self, connection: ClusterConnection, security: ClientSecurity, options: DoctorOptions, clock: Clock
    ) -> None:
        self.found: list[Diagnosis] = []
        self._connection = connection
        self._security = security
        self._options = options
        self._clock = clock

    async def run(self) -> None:
        """Look at everything. Raises UsageError; ToolError where no broker answers."""
        async with responding(self._connection, self._security) as found:
            await self._examine(ExaminedCluster(found, self._clock))

    async def _examine(self, cluster: ExaminedCluster) -> None:
        trends = DiskTrends()
        limit = _MOST_SECONDS
        before = await self._read_groups(cluster)
        self.found += [*cluster_checks.brokers(cluster.found), *cluster_checks.quorum(cluster)]
        self.found += await cluster.check(
            Area.REPLICATION, "Replicas", lambda: cluster_checks.replication(cluster), limit
        )
        self.found += await cluster.check(
            Area.TOPICS, "Replication factors", lambda: cluster_checks.topics(cluster), limit
        )
        self.found += await cluster.check(
            Area.TRANSACTIONS, "Transactions", lambda: group_checks.transactions(cluster), limit, asks_each=True
        )
        disks = await self._disks(cluster, trends)
        self.found += await cluster.check(
            Area.VERSIONS, "Versions", lambda: broker_checks.versions(cluster), limit, asks_each=True
        )
        await self._settings(cluster)
        await self._clocks(cluster)
        if before is not None:
            await self._groups(cluster, before)
        if self._options.watch_s:
            disks = await self._disks(cluster, trends)
        self.found += disks

    async def _disks(self, cluster: ExaminedCluster, trends: DiskTrends) -> list[Diagnosis]:
        return await cluster.check(
            Area.DISKS, "Data folders", lambda: cluster_checks.disks(cluster, trends), _MOST_SECONDS, asks_each=True
        )

    async def _read_groups(self, cluster: ExaminedCluster) -> Mapping[str, GroupRow] | None:
        """The groups, or None where they cannot be read, of which there is a line then."""
        read: dict[str, GroupRow] = {}

        async def look() -> list[Diagnosis]:
            read.update(await group_checks.read_groups(cluster))
            return []

        lines = await cluster.check(Area.GROUPS, "Groups", look, _MOST_SECONDS, asks_each=True)
        self.found += lines
        return None if any(line.level is DiagnosisLevel.UNKNOWN for line in lines) and not read else read

    async def _groups(self, cluster: ExaminedCluster, first: Mapping[str, GroupRow]) -> None:
        before: Mapping[str, GroupRow] | None = None
        now: Mapping[str, GroupRow] | None = first
        if self._options.watch_s:
            await trio.sleep(self._options.watch_s)
            before, now = first, await self._read_groups(cluster)
        if now is not None:
            self.found += group_checks.of_groups(before, now, cluster.clock.now_ms(), self._options.watch_s)

    async def _settings(self, cluster: ExaminedCluster) -> None:
        """What depends on brokers' settings: they themselves, limits, certificates."""
        told: dict[int, broker_checks.DescribedBroker] = {}

        async def look() -> list[Diagnosis]:
            told.update(await broker_checks.read_settings(cluster))
            return broker_checks.settings(told)

        self.found += await cluster.check(Area.SETTINGS, "Settings", look, _MOST_SECONDS, asks_each=True)
        self.found += broker_checks.limits(told)
        self.found += await cluster.workers.run(machine.of_brokers, cluster.client.nodes)
        uses_tls = self._security.tls is not None
        addresses = certificates.tls_addresses(cluster.client.nodes, told, uses_tls=uses_tls)
        if addresses or told:
            self.found += await certificates.of_listeners(cluster, addresses)
        else:
            self.found.append(
                unknown(Area.CERTIFICATES, "Which listeners have TLS: this needs the settings of brokers")
            )

    async def _clocks(self, cluster: ExaminedCluster) -> None:
        brokers = sorted(cluster.client.nodes)
        measured: dict[int, clocks.ClockReading] = {}
        if self._options.probe_clocks and cluster.found.problems():
            self.found.append(
                unknown(Area.CLOCKS, "The clocks of brokers, by a topic: brokers or controllers do not respond")
            )
        elif self._options.probe_clocks:
            try:
                measured = await cluster.workers.run(clocks.by_topic, self._connection, brokers)
            except (kafka.errors.KafkaError, ToolError) as error:
                self.found.append(clocks.not_measured(error))

        async def look() -> list[Diagnosis]:
            leader = None
            if not cluster.found.quorum.problem:
                with contextlib.suppress(KafkaError):  # the lines of the quorum say why
                    leader = await clocks.of_quorum_leader(cluster)
            return clocks.lines(leader, measured, brokers)

        self.found += await cluster.check(Area.CLOCKS, "Clocks", look, _MOST_SECONDS)


def _of_console(connection: ClusterConnection, address: str) -> list[Diagnosis]:
    """What the overview of an Ottla broker's console says: only the broker knows its event loop, and who was refused."""
    try:
        host, port = split_host_port(address, 8080)
    except ValueError as error:
        raise UsageError(f"--console: {error}") from None
    try:
        seen = ConsoleClient(host, port, connection.security()).look()
    except ToolError as error:
        why = str(error)
        return [unknown(Area.CONSOLE, why[0].upper() + why[1:])]
    return _overview(seen, f"http://{address}/")


def _overview(seen: Mapping[str, Any], page: str) -> list[Diagnosis]:
    """``seen`` is the JSON of ``/top.json``."""
    broker = seen["broker"]
    found = []
    for each in broker["findings"]:
        names = ", ".join(subject["name"] for subject in each["subjects"])
        level = DiagnosisLevel.PROBLEM if each["severity"] == Severity.PROBLEM else DiagnosisLevel.WARNING
        found.append(Diagnosis(Area.CONSOLE, level, each["what"] + (f": {names}" if names else ""), page))
    for check in broker["checks"]:
        if check["why_not"]:
            found.append(unknown(Area.CONSOLE, f"{check['what']}: {check['why_not']}"))
        elif not broker["findings"]:
            found.append(ok(Area.CONSOLE, f"Nothing is wrong with {check['what']}"))
    return found
