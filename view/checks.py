"""The checks that answer "what is wrong?", for the view of a broker and for that of any Kafka.

Each has an outcome: what was looked at, in words, and what it has found. Limits are those at which somebody has to do something
soon; each says why it is so large.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..base.errors import ErrorCode
from ..base.wording import counted, plural
from .connect_rows import UNASSIGNED, ConnectorRow, ConnectWorkerRow
from .disk_space import DiskRow
from .findings import MOST_NAMED, CheckRow, FindingRow, Place, Severity, Subject, Worst
from .lag_history import ALONE_MS, GROWTH_MS, LagHistory
from .quorum_rows import QuorumRow
from .rows import ErrorRow, GroupRow, TopicRow

HELD_WARNING_MS = 2 * 60_000
"""A producer's default time-out of transactions is a minute; then the coordinator aborts it."""
HELD_PROBLEM_MS = 15 * 60_000
"""The longest that brokers let a transaction last, where nothing else is set (``transaction.max.timeout.ms``)."""
STILL_WARNING_SECONDS, STILL_PROBLEM_SECONDS = 0.25, 2.0
"""Clients notice the first; the second is a good part of the sessions of members and followers."""
REFUSED_MS = 5 * 60_000
_GIB = 1 << 30
_FREE_WARNING, _FREE_PROBLEM = (0.10, 100 * _GIB), (0.05, 20 * _GIB)
"""A share of the volume that is free, and bytes: with more of either there is room."""
_FULL_SOON_MS = 6 * 3_600_000
_WRITING = frozenset(
    {"Produce", "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit"}
)
_MOVED = frozenset(
    each.name
    for each in (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    )
)
"""With these a producer asks again, or somewhere else, and loses nothing."""

KNOWN_TO_BROKERS = CheckRow(
    "what producers were answered, and the event loops of Ottla brokers",
    "each broker alone knows them, for its own console",
)

Outcome = tuple[CheckRow, Sequence[FindingRow]]


class HeldPartition(NamedTuple):
    """A partition whose last stable offset is held by an open transaction, and for how long."""

    topic: str
    number: int
    held_ms: int


class PartitionChecks:
    """Of all topics: ``add`` every one first."""

    def __init__(self) -> None:
        self.partitions = self.led = self.under_replicated = self.offline = 0
        self._offline, self._under_replicated = Worst(), Worst()

    def add(self, row: TopicRow) -> None:
        self.partitions += row.partitions
        self.led += row.led
        if row.under_replicated:
            self.under_replicated += row.under_replicated
            self._under_replicated.add(row.under_replicated, row.name)
        if row.offline:
            self.offline += row.offline
            self._offline.add(row.offline, row.name)

    def outcome(self, why_not: str = "") -> Outcome:
        check = CheckRow(f"the leaders and in-sync replicas of {counted(self.partitions, 'partition')}", why_not)
        found = []
        if count := self.offline:
            what = f"{counted(count, 'partition')} {plural(count, 'has', 'have')} no leader"
            found.append(_of_topics("offline", Severity.PROBLEM, what, self._offline))
        if count := self.under_replicated:
            what = f"{counted(count, 'partition')} {plural(count, 'has', 'have')} fewer replicas in sync than there should be"
            found.append(_of_topics("under-replicated", Severity.WARNING, what, self._under_replicated))
        return check, found


def _of_topics(kind: str, severity: Severity, what: str, worst: Worst) -> FindingRow:
    return FindingRow(kind, severity, what, Place.CLUSTER, worst.subjects(Place.TOPIC), worst.count)


class GroupChecks:
    """Of all groups: ``add`` every one first."""

    def __init__(self, lags: LagHistory, now_ms: int) -> None:
        self.groups = self._partitions = self._unknown = 0
        self._lags = lags
        self._now_ms = now_ms
        self._lost, self._growing, self._alone = Worst(), Worst(), Worst()
        self._growing_since = self._alone_since = now_ms

    def add(self, row: GroupRow) -> None:
        self.groups += 1
        self._partitions += row.partitions
        self._unknown += row.unknown
        if row.lost:
            self._lost.add(row.lost, row.group_id)
        if not row.lag:
            return
        growth = self._lags.growth(row.group_id)
        if growth is not None:
            self._growing.add(row.lag - growth.began_at, row.group_id)
            self._growing_since = min(self._growing_since, growth.since_ms)
        if row.members == 0:
            since = self._lags.without_members_since(row.group_id, self._now_ms)
            if since is not None:
                self._alone.add(row.lag, row.group_id)
                self._alone_since = min(self._alone_since, since)

    def outcomes(self, why_not: str = "") -> list[Outcome]:
        """``why_not``: why groups were not looked at at all."""
        known = self._partitions - self._unknown
        committed = f"what {counted(self.groups, 'group')} {plural(self.groups, 'has', 'have')} committed in"
        missed = f"the ends of {counted(self._unknown, 'partition')} are not known" if self._unknown else ""
        watched = (
            self._lags.left_out and f"of {counted(self._lags.left_out, 'group')}, beyond the most that are watched"
        )
        lost, growing, alone = self._lost.count, self._growing.count, self._alone.count
        return [
            (
                CheckRow(f"{committed} {counted(known, 'partition')}", why_not or missed),
                _groups("lost", self._lost, f"{counted(lost, 'group')} did not read records before they were deleted"),
            ),
            (
                CheckRow(
                    "whether the lag of a group grows",
                    why_not or self._lags.why_unknown(self._now_ms, GROWTH_MS) or watched or "",
                ),
                _groups(
                    "growing lag",
                    self._growing,
                    f"The lag of {counted(growing, 'group')} grows",
                    self._growing_since,
                    Place.GROUPS_BY_LAG,
                ),
            ),
            (
                CheckRow(
                    "groups that have lag and no member",
                    why_not or self._lags.why_unknown(self._now_ms, ALONE_MS) or watched or "",
                ),
                _groups(
                    "no member",
                    self._alone,
                    f"{counted(alone, 'group')} {plural(alone, 'has', 'have')} lag and no member",
                    self._alone_since,
                    Place.GROUPS_BY_LAG,
                ),
            ),
        ]


def _groups(
    kind: str, worst: Worst, what: str, since_ms: int | None = None, place: Place = Place.GROUPS
) -> list[FindingRow]:
    if not worst.count:
        return []
    return [FindingRow(kind, Severity.WARNING, what, place, worst.subjects(Place.GROUP), worst.count, since_ms)]


def held_back(held: Iterable[HeldPartition], now_ms: int, what: str, why_not: str = "") -> Outcome:
    """Whether consumers that read committed records only are held back; ``what``: in which partitions was looked."""
    long = sorted(
        (each for each in held if each.held_ms >= HELD_WARNING_MS), key=lambda each: (-each.held_ms, each[:2])
    )
    check = CheckRow(f"open transactions in {what}", why_not)
    if not long:
        return check, []
    longest = long[0].held_ms
    severity = Severity.PROBLEM if longest >= HELD_PROBLEM_MS else Severity.WARNING
    subjects = tuple(Subject(f"{each.topic}-{each.number}", Place.TOPIC, each.topic) for each in long[:MOST_NAMED])
    sentence = f"An open transaction holds back consumers in {counted(len(long), 'partition')}"
    return check, [
        FindingRow("transaction", severity, sentence, Place.TRANSACTIONS, subjects, len(long), now_ms - longest)
    ]


def refused_producers(errors: Iterable[ErrorRow], now_ms: int) -> Outcome:
    """Clients whose records or transactions were refused in the last minutes, the newest error of each."""
    minutes = REFUSED_MS // 60_000
    check = CheckRow(f"what producers were answered in the last {counted(minutes, 'minute')}")
    newest: dict[str, ErrorRow] = {}
    for row in errors:
        if row.api in _WRITING and row.error not in _MOVED and now_ms - row.last_ms <= REFUSED_MS:
            known = newest.get(row.client_id)
            if known is None or known.last_ms < row.last_ms:
                newest[row.client_id] = row
    if not newest:
        return check, []
    worst = sorted(newest.values(), key=lambda row: -row.last_ms)[:MOST_NAMED]
    subjects = tuple(
        Subject(f"{row.client_id or 'without a client id'} ({row.error})", Place.CLIENT, row.client_id) for row in worst
    )
    what = (
        f"{counted(len(newest), 'producer')} {plural(len(newest), 'was', 'were')} refused in the last {minutes} minutes"
    )
    return check, [FindingRow("refused", Severity.WARNING, what, Place.ERRORS, subjects, len(newest))]


def disks(rows: Sequence[DiskRow], whose: str, why_not: str = "") -> Outcome:
    """Data folders that have failed, that are nearly full, and that will be full soon; ``whose``: " of this broker"."""
    silent = sum(row.usable is None and not row.failure for row in rows)
    if not why_not and silent:
        why_not = f"{counted(silent, 'of them tells', 'of them tell')} no free space"
    check = CheckRow(f"{counted(len(rows), 'data folder')}{whose}", why_not)
    failed = [row for row in rows if row.failure]
    full = sorted((row for row in rows if _is_below(row, _FREE_WARNING)), key=lambda row: row.free or 0)
    soon = [row for row in rows if row.full_in_ms is not None and row.full_in_ms < _FULL_SOON_MS and row not in full]
    soon.sort(key=lambda row: row.full_in_ms or 0)
    found = []
    if failed:
        what = f"{counted(len(failed), 'data folder')} {plural(len(failed), 'has', 'have')} failed"
        found.append(_folders("failed folder", Severity.PROBLEM, what, failed, [row.failure for row in failed]))
    if full:
        severity = Severity.PROBLEM if any(_is_below(row, _FREE_PROBLEM) for row in full) else Severity.WARNING
        what = f"{counted(len(full), 'data folder')} {plural(len(full), 'is', 'are')} nearly full"
        found.append(_folders("disk", severity, what, full, [f"{row.free or 0:.1%} free" for row in full]))
    if soon:
        what = f"{counted(len(soon), 'data folder')} will be full soon"
        times = [f"in about {_hours(row.full_in_ms or 0)}" for row in soon]
        found.append(_folders("filling disk", Severity.WARNING, what, soon, times))
    return check, found


def _is_below(row: DiskRow, limit: tuple[float, int]) -> bool:
    share, size = limit
    return row.free is not None and row.free < share and (row.usable or 0) < size


def _folders(kind: str, severity: Severity, what: str, rows: Sequence[DiskRow], notes: Sequence[str]) -> FindingRow:
    subjects = tuple(
        Subject(f"{row.path} of broker {row.broker_id} ({note})", Place.CLUSTER)
        for row, note in zip(rows[:MOST_NAMED], notes, strict=False)
    )
    return FindingRow(kind, severity, what, Place.CLUSTER, subjects, len(rows))


def _hours(ms: int) -> str:
    hours, minutes = divmod(ms // 60_000, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def event_loop(worst_seconds: float) -> Outcome:
    """The largest lateness of the loop's timers in the last minute."""
    check = CheckRow("the event loop's last minute")
    if worst_seconds < STILL_WARNING_SECONDS:
        return check, []
    severity = Severity.PROBLEM if worst_seconds >= STILL_PROBLEM_SECONDS else Severity.WARNING
    what = f"The event loop has stood still for {worst_seconds * 1000:.0f} ms in the last minute"
    return check, [FindingRow("event loop", severity, what, Place.SLOWEST)]


def readiness(ready: Mapping[str, bool]) -> Outcome:
    found = [
        FindingRow(
            "not ready",
            Severity.PROBLEM,
            f"The broker is not ready: {name.replace('_', ' ')} is not so",
            Place.OVERVIEW,
        )
        for name, is_so in ready.items()
        if not is_so
    ]
    return CheckRow("whether this broker is ready"), found


def quorum(row: QuorumRow) -> Outcome:
    why_not = row.why or ("" if row.voters else "nobody tells who the voters are")
    check = CheckRow(f"the {counted(len(row.voters), 'voter')} of the quorum", why_not)
    severity = Severity.PROBLEM if row.leader is None else Severity.WARNING
    return check, [FindingRow("quorum", severity, each.removesuffix("."), Place.QUORUM) for each in row.warnings()]


def answers(brokers: int, silent: Mapping[int, str], seconds: int) -> Outcome:
    """Whether brokers answer; ``silent`` has those that did not, with why, in the last ``seconds``."""
    check = CheckRow(f"whether {counted(brokers, 'broker')} {plural(brokers, 'answers', 'answer')}")
    within = f"in the last {counted(seconds, 'second')}"
    if len(silent) <= 1:
        sentences = [
            f"Broker {broker_id} has not answered all that it was asked {within}: {why}"
            for broker_id, why in silent.items()
        ]
        return check, [FindingRow("silent broker", Severity.WARNING, what, Place.CLUSTER) for what in sentences]
    subjects = tuple(
        Subject(f"broker {broker_id} ({why})", Place.CLUSTER) for broker_id, why in [*silent.items()][:MOST_NAMED]
    )
    what = f"{len(silent)} brokers have not answered all that they were asked {within}"
    return check, [FindingRow("silent broker", Severity.WARNING, what, Place.CLUSTER, subjects, len(silent))]


def connect(rows: Sequence[ConnectorRow], workers: Sequence[ConnectWorkerRow]) -> Outcome:
    """Whether connectors, or tasks of them, have failed or have no worker. A worker that does not answer is named."""
    silent = [f"{worker.place}: {worker.why_not}" for worker in workers if worker.why_not]
    what = f"{counted(len(rows), 'connector')} of Kafka Connect, with {plural(len(rows), 'its', 'their')} tasks"
    check = CheckRow(what, "; ".join(silent))
    connectors = [row for row in rows if row.is_failed]
    tasks = [row for row in rows if row.failed]
    waiting = [row for row in rows if row.unassigned or row.state == UNASSIGNED]
    found = []
    if connectors:
        sentence = f"{counted(len(connectors), 'connector')} {plural(len(connectors), 'has', 'have')} failed"
        found.append(_connectors("connector", Severity.PROBLEM, sentence, connectors))
    if tasks:
        count = sum(row.failed for row in tasks)
        sentence = (
            f"{counted(count, 'task')} of {counted(len(tasks), 'connector')} {plural(count, 'has', 'have')} failed"
        )
        found.append(_connectors("connector task", Severity.PROBLEM, sentence, tasks))
    if waiting:
        sentence = (
            f"{counted(len(waiting), 'connector')} {plural(len(waiting), 'waits', 'wait')} for a worker of Connect"
        )
        found.append(_connectors("unassigned", Severity.WARNING, sentence, waiting))
    return check, found


def _connectors(kind: str, severity: Severity, what: str, rows: Sequence[ConnectorRow]) -> FindingRow:
    worst = sorted(rows, key=lambda row: -row.failed)[:MOST_NAMED]
    subjects = tuple(Subject(row.name, Place.CONNECTOR, row.name, row.place) for row in worst)
    return FindingRow(kind, severity, what, Place.CONNECT, subjects, len(rows))


def nothing_answers(why: str, since_ms: int) -> FindingRow:
    """About a cluster none of whose brokers answers."""
    return FindingRow("outage", Severity.PROBLEM, f"No broker answers: {why}", Place.CLUSTER, since_ms=since_ms)
