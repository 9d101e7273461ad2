"""The checks of ``ottla doctor`` that any Kafka answers: brokers, quorum, replication, topics and disks.

They are those of the console's overview (``view.checks``) where it has them, with what mends each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ....base.errors import KafkaError
from ....base.wording import counted, plural
from ....view import checks
from ....view.checks import PartitionChecks
from ....view.disk_space import DiskRow, DiskTrends
from ....view.quorum_rows import QuorumRow
from ....view.remote import rows, topic_requests
from ....view.remote.topic_requests import PartitionInfo
from ....view.rows import TrafficRates
from ..responding import RespondingCluster, Silence, hidden_topics
from .diagnosis import Area, Diagnosis, named, note, of_finding, ok, problem, unknown, warning
from .examined import ExaminedCluster, why

_LARGEST_IMBALANCE = 0.1
"""Kafka's ``leader.imbalance.per.broker.percentage``, where nothing else is set."""
_SAFE = 3
"""So many replicas and voters outlive the loss of one with another one in reserve."""
_NO_RATES = TrafficRates(0.0, None, None)
_MENDS = {
    "offline": "start the brokers that 'ottla cluster describe' shows as down;"
    " docs/cluster.md#recover-when-no-in-sync-replica-is-left",
    "under-replicated": "ottla topics describe --under-replicated; docs/troubleshooting.md#under-replicated-partitions",
    "failed folder": "docs/troubleshooting.md#a-log-directory-is-offline-kafka_storage_error",
    "disk": "'ottla log-dirs' shows the sizes; docs/troubleshooting.md#retention-is-set-and-the-disk-stays-full",
    "filling disk": "'ottla log-dirs' shows the sizes; docs/troubleshooting.md#retention-is-set-and-the-disk-stays-full",
    "lost": "see whether it runs, and whether advertised.listeners leads to it from here;"
    " docs/troubleshooting.md#the-first-connection-works-then-everything-times-out",
    "denied": "docs/security.md: security.protocol and the like have to be those of its listener (--command-config)",
    "silent leader": "start the brokers that do not respond; docs/cluster.md#recover-when-no-in-sync-replica-is-left",
    "quorum": "ottla cluster quorum; docs/quorum.md#seeing-it",
    "no majority": "start the controllers that do not run;"
    " docs/quorum.md#restoring-a-quorum-that-lost-its-majority if most of them never return",
}


def brokers(found: RespondingCluster) -> list[Diagnosis]:
    """The brokers that respond; those that do not; and those that have replicas or are registered and are not alive."""
    lines = [problem(Area.BROKERS, what, _start(broker_id)) for broker_id, what in found.down.items()]
    for broker_id, each in found.silent.items():
        mend = _start(broker_id) if each.kind is Silence.REFUSED else _MENDS[each.kind.name.lower()]
        lines.append(problem(Area.BROKERS, each.what, mend))
    alive = sorted(found.state.brokers.keys() - found.silent.keys())
    if alive:
        count = f"{counted(len(alive), 'broker')} {plural(len(alive), 'is', 'are')} alive"
        lines.append(ok(Area.BROKERS, f"{count}: {named(alive)}"))
    return lines


def _start(broker_id: int) -> str:
    start = f"start it again, with 'ottla serve --node {broker_id} …' or by its service (docs/cluster.md)"
    return f"{start}; if it cannot return, 'ottla cluster drain {broker_id} --replicas'"


def _replicas(cluster: ExaminedCluster) -> Counter[int]:
    """How many replicas each broker has."""
    topics = cluster.state.topics.values()
    return Counter(replica for topic in topics for each in topic.partitions.values() for replica in each.replicas)


def quorum(cluster: ExaminedCluster) -> list[Diagnosis]:
    """The controllers: their leader, the voters that lag, and how many there are."""
    row, why = cluster.found.quorum.row, cluster.found.quorum.problem
    found = [problem(Area.QUORUM, why, _MENDS["no majority"])] if why else []
    if row is None:
        return found or [_without_quorum(cluster)]
    if row.leader is None and why:
        return found
    check, findings = checks.quorum(row)
    found += [of_finding(Area.QUORUM, each, _MENDS["quorum"]) for each in findings]
    if not check.is_made:
        found.append(unknown(Area.QUORUM, f"{check.what}: {check.why_not}"))
    elif not found:
        leads = f"Controller {row.leader} leads {counted(len(row.voters), 'voter')}"
        found.append(ok(Area.QUORUM, f"{leads}, and none lags"))
    return [*found, *_voters(row, len(cluster.state.brokers))]


def _without_quorum(cluster: ExaminedCluster) -> Diagnosis:
    controller = cluster.state.controller_id
    what = f"Broker {controller} is the controller; ZooKeeper has the metadata, and is not checked"
    return note(Area.QUORUM, what, "docs/migrate.md says how to leave ZooKeeper")


def _voters(row: QuorumRow, brokers: int) -> Iterable[Diagnosis]:
    voters = len(row.voters)
    if not voters:
        return
    mend = "ottla cluster add-voter; docs/quorum.md#adding-a-voter"
    if voters < _SAFE:
        what = f"The quorum has {counted(voters, 'voter')}: the loss of one stops every change"
        yield warning(Area.QUORUM, what, mend) if brokers >= _SAFE else note(Area.QUORUM, what, mend)
    elif voters % 2 == 0:
        what = f"The quorum has {voters} voters: it survives the loss of no more of them than with {voters - 1}"
        yield note(Area.QUORUM, what, mend)


async def replication(cluster: ExaminedCluster) -> list[Diagnosis]:
    """Partitions without a leader, with fewer replicas in sync than there should be, or led by another replica than the first."""
    state, pace = cluster.state, cluster.pace()
    of_partitions, refusing = PartitionChecks(), []
    minima, why_not = await _minima(cluster)
    for topic in state.topics.values():
        of_partitions.add(rows.topic_row(topic, {}, {}, None, _NO_RATES, None))
        if any(_refuses(each, minima.get(topic.name, 0)) for each in topic.partitions.values()):
            refusing.append(topic.name)
        if pace.is_due(len(topic.partitions)):
            await pace.rest()
    _, findings = of_partitions.outcome()
    found = [of_finding(Area.REPLICATION, each, _MENDS[each.kind]) for each in findings]
    if refusing:
        what = f"{counted(len(refusing), 'topic')} {plural(len(refusing), 'refuses', 'refuse')} acks=all"
        mend = "ottla topics describe --under-min-isr; docs/troubleshooting.md#under-replicated-partitions"
        found.append(problem(Area.REPLICATION, f"{what}, below min.insync.replicas: {named(refusing)}", mend))
    found += _on_silent(cluster)
    if not found:
        have = f"{counted(of_partitions.partitions, 'partition')} {plural(of_partitions.partitions, 'has', 'have')}"
        found.append(ok(Area.REPLICATION, f"{have} a leader and all replicas in sync"))
    if unseen := sorted(state.topics.keys() - minima.keys()):
        found.append(unknown(Area.REPLICATION, f"min.insync.replicas of {named(unseen)}: {why_not}"))
    return [*found, *_imbalance(cluster)]


def _on_silent(cluster: ExaminedCluster) -> Iterable[Diagnosis]:
    """Partitions that brokers are to lead, or to be in sync with, that do not respond, as the metadata has it for now."""
    led, in_sync = Counter[str](), Counter[str]()
    for topic in cluster.state.topics.values():
        for each in topic.partitions.values():
            if each.leader in cluster.silent:
                led[topic.name] += 1
            elif any(replica in cluster.silent for replica in each.isr):
                in_sync[topic.name] += 1
    if led:
        count = (
            f"{counted(led.total(), 'partition')} {plural(led.total(), 'has', 'have')} a leader that does not respond"
        )
        yield problem(Area.REPLICATION, f"{count}: {named(led)}", _MENDS["silent leader"])
    if in_sync:
        count = f"{counted(in_sync.total(), 'partition')} {plural(in_sync.total(), 'has', 'have')} replicas"
        what = f"{count} on brokers that do not respond, and counts them as in sync: {named(in_sync)}"
        yield warning(Area.REPLICATION, what, _MENDS["under-replicated"])


async def _minima(cluster: ExaminedCluster) -> tuple[Mapping[str, int], str]:
    """``min.insync.replicas`` by topic, and why it is missing of some."""
    try:
        minima = await topic_requests.min_isrs(cluster.client, cluster.state.topics)
    except (OSError, KafkaError) as error:
        return {}, why(error)
    return minima, "it takes DescribeConfigs of the topics"


def _refuses(partition: PartitionInfo, least: int) -> bool:
    """Never more are asked for than there are replicas (KAFKA-15583)."""
    return partition.leader is not None and len(partition.isr) < min(least, len(partition.replicas))


def _imbalance(cluster: ExaminedCluster) -> Iterable[Diagnosis]:
    preferred, elsewhere = Counter[int](), Counter[int]()
    for topic in cluster.state.topics.values():
        for each in topic.partitions.values():
            first = each.replicas[0]
            if each.leader is not None and first in cluster.state.brokers:
                preferred[first] += 1
                elsewhere[first] += each.leader != first
    if not elsewhere.total():
        return
    worst = max(elsewhere[broker] / preferred[broker] for broker in preferred)
    where = f"{counted(elsewhere.total(), 'partition')} {plural(elsewhere.total(), 'is', 'are')} not led by the preferred replica"
    mend = "ottla cluster elect-leaders"
    if worst > _LARGEST_IMBALANCE:
        yield warning(Area.REPLICATION, f"{where}, {worst:.0%} of those of one broker", mend)
    else:
        yield note(Area.REPLICATION, where, mend)


async def topics(cluster: ExaminedCluster) -> list[Diagnosis]:
    """Replication factors that do not outlive the loss of a broker."""
    brokers = len({*cluster.state.brokers, *_replicas(cluster)})
    wanted = min(_SAFE, brokers)
    alone, internal = [], []
    for topic in cluster.state.topics.values():
        factor = min((len(each.replicas) for each in topic.partitions.values()), default=wanted)
        if topic.is_internal and factor < wanted:
            internal.append(topic.name)
        elif not topic.is_internal and factor == 1:
            alone.append(topic.name)
    found = []
    if internal:
        has = f"{named(internal)} {plural(len(internal), 'has', 'have')} fewer than {wanted} replicas"
        mend = f"ottla cluster add-replicas --topic {internal[0]} --replication-factor {wanted}"
        found.append(warning(Area.TOPICS, f"{has}: groups and transactions fail with a broker", mend))
    if alone and brokers >= _SAFE:
        has = f"{counted(len(alone), 'topic')} {plural(len(alone), 'has', 'have')} one replica"
        mend = f"ottla cluster add-replicas --topic {alone[0]} --replication-factor {wanted}"
        found.append(warning(Area.TOPICS, f"{has}, in a cluster of {brokers} brokers: {named(alone)}", mend))
    count = counted(len(cluster.state.topics), "topic")
    well = f"{count}: the internal ones have replicas on {counted(wanted, 'broker')}"
    return found or [ok(Area.TOPICS, well if cluster.state.topics else "There are no topics")]


async def disks(cluster: ExaminedCluster, trends: DiskTrends) -> list[Diagnosis]:
    """Data folders, with their free space; and topics in them that this user may not see."""
    folders = await topic_requests.log_directories(cluster.client, cluster.state, cluster.failed)
    seen = trends.note(cluster.clock.now_ms(), folders.disks)
    check, findings = checks.disks(seen, "", folders.refused)
    found = [of_finding(Area.DISKS, each, _MENDS[each.kind]) for each in findings]
    if not check.is_made:
        found.append(unknown(Area.DISKS, f"{check.what}: {check.why_not}"))
    elif not found:
        found.append(ok(Area.DISKS, f"{check.what}: {_room(seen)}"))
    if folders.refused:
        found.append(unknown(Area.TOPICS, "Whether there are topics that this user may not describe"))
    hidden = await hidden_topics(cluster.client, folders.others)
    if hidden:
        found.append(unknown(Area.TOPICS, f"{named(hidden)}: it takes Describe (TOPIC_AUTHORIZATION_FAILED)"))
    return found


def _room(seen: Iterable[DiskRow]) -> str:
    least = min((row.free for row in seen if row.free is not None), default=None)
    return "free space is not reported" if least is None else f"at least {least:.0%} free"
