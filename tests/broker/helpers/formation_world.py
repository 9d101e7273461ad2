"""Nodes that form clusters, without a loop: disks that lose power, messages that are lost, late and doubled, wrong lists.

A ``FormationWorld`` has hosts with a disk each. A process on a host asks the others of its list once a second and does what
``FormationNode`` says. Its disk is the product's ``FormationStore`` on a ``MemoryDisk``; it may die at each change of it.

Checked at every change of a disk: all disks that are formatted, or have decided, are of one cluster where their lists overlap; a
first voter has the directory id that its cluster's voters have for it; first voters of one cluster have the same first records.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence

from ottla.broker.directories.directory_ids import random_directory_id
from ottla.broker.formation.messages import decode_request, decode_response, encode_request, encode_response
from ottla.broker.formation.protocol import (
    FormationNode,
    FormationProposal,
    FormationRecord,
    FormationRefusedError,
    FormationStatement,
    ListedNode,
)
from ottla.broker.formation.record import RECORD_FILE, FormationStore, has_feature_levels, initial_feature_levels
from ottla.log.checkpoints import read_meta_properties
from ottla.log.disk import join
from ottla.log.files import BOOTSTRAP_CHECKPOINT, METADATA_PARTITION_DIR
from ottla.log.memory_disk import MemoryDisk
from ottla.log.metadata_snapshots import BOOTSTRAP_ID, SnapshotReader
from ottla.wire.messages.control_records import Voter
from ottla.wire.schema import uuid_to_text

POLL_MS = 1000.0
RESPONSE_MS = 4000.0
"""For how long a node waits for a response."""
FOLDERS = ("/data/logs", "/data/metadata")
"""The second one has the metadata log."""


class BrokenRuleError(Exception):
    """A checker has found what must never be."""


class _DiedError(Exception):
    """The process has died at a change of the disk."""


class MortalMemoryDisk(MemoryDisk):
    """A disk at whose ``steps``-th next change the process dies; None: at none."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: int | None = None

    def check(self, operation: str, path: str) -> None:
        super().check(operation, path)
        if self.steps is not None and operation in ("open", "write", "sync", "rename", "remove"):
            self.steps -= 1
            if self.steps < 0:
                self.steps = None
                raise _DiedError


class FormationHost:
    """A machine, with a disk that may be replaced, and at most one process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.disk = MortalMemoryDisk()
        self.node_id = 0
        self.nodes: tuple[ListedNode, ...] = ()
        self.life = 0
        self.is_up = False
        self.is_paused = False
        self.node: FormationNode | None = None
        """None while the process is down, and where it is formatted."""
        self.refusal: str | None = None

    @property
    def store(self) -> FormationStore:
        return FormationStore(self.disk, FOLDERS, FOLDERS[1])

    @property
    def cluster_id(self) -> str | None:
        """The cluster that the disk is of: formatted, or decided."""
        meta = read_meta_properties(self.disk, FOLDERS[1])
        if meta is not None:
            return meta.cluster_id
        return self.record.cluster_id if self.disk.exists(join(FOLDERS[1], RECORD_FILE)) else None

    @property
    def directory_id(self) -> bytes | None:
        meta = read_meta_properties(self.disk, FOLDERS[1])
        if meta is not None:
            return meta.directory_id
        return self.record.directory_id if self.disk.exists(join(FOLDERS[1], RECORD_FILE)) else None

    @property
    def record(self) -> FormationRecord:
        return self.store.load(random.Random(0))

    @property
    def is_formatted(self) -> bool:
        return read_meta_properties(self.disk, FOLDERS[1]) is not None


class FormationWorld:
    """See the module. ``randomness`` decides delays, and what a disk without power keeps."""

    def __init__(self, names: Sequence[str], randomness: random.Random) -> None:
        self.hosts = {name: FormationHost(name) for name in names}
        self.randomness = randomness
        self.now_ms = 0.0
        self.cut: set[tuple[str, str]] = set()
        """Pairs of hosts between which everything is lost, in this direction."""
        self.loss = self.doubles = self.lateness = 0.0
        """Shares of messages."""
        self.events: list[str] = []
        self.voters_of: dict[str, tuple[bytes, ...]] = {}
        """By cluster that was decided for, the directory ids of its first voters."""
        self.lost: set[bytes | None] = set()
        """The directory ids of disks that were replaced."""
        self.may_die: Callable[[FormationHost], bool] = lambda host: False
        """Whether a process dies now that it has something new on its disk."""
        self.on_death: Callable[[str], None] = lambda name: None
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    # --- time ---------------------------------------------------------------------------------------------------------

    def at(self, delay_ms: float, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._count, action))

    def run(self, for_ms: float) -> None:
        end = self.now_ms + for_ms
        while self._queue and self._queue[0][0] <= end:
            self.now_ms, _, action = heapq.heappop(self._queue)
            action()
        self.now_ms = end

    def note(self, text: str) -> None:
        self.events.append(f"{self.now_ms / 1000:8.3f} {text}")

    # --- processes ----------------------------------------------------------------------------------------------------

    def start(self, name: str, node_id: int, names: Sequence[str]) -> None:
        """Start the process of a host with a number and a list."""
        host = self.hosts[name]
        assert not host.is_up
        host.life += 1
        host.is_up, host.is_paused, host.node, host.refusal = True, False, None, None
        host.node_id, host.nodes = node_id, tuple(ListedNode(each, 9092) for each in names)
        self.note(f"{name} starts as node {node_id} of {','.join(names)}")
        self._guarded(host, lambda: self._begin(host))

    def _begin(self, host: FormationHost) -> None:
        host.store.make_log_dirs()
        if host.store.is_formatted():
            return
        record = host.store.load(self.randomness)
        try:
            host.node = FormationNode(host.node_id, host.nodes, record, self._new_proposal, has_feature_levels)
        except FormationRefusedError as error:
            host.refusal, host.is_up = str(error), False
            self.note(f"{host.name} refuses: {error}")
            return
        self._settle(host)
        self._poll(host, host.life)

    def _new_proposal(self, ballot: int, directories: tuple[bytes, ...]) -> FormationProposal:
        cluster_id = uuid_to_text(random_directory_id(self.randomness))
        return FormationProposal(ballot, cluster_id, int(self.now_ms), initial_feature_levels(), directories)

    def kill(self, name: str, *, loses_power: bool = False) -> None:
        host = self.hosts[name]
        self.note(f"{name} {'loses power' if loses_power else 'is killed'}")
        host.is_up, host.node, host.disk.steps = False, None, None
        if loses_power:
            host.disk.crash(self.randomness)
        else:
            host.disk.kill()

    def may_wipe(self, name: str) -> bool:
        """Whether each cluster keeps a majority of its first voters' disks, or is gone with this one.

        Gone: nobody is left in it, and no later node waits, whom its last word may reach still.
        """
        lost = self.hosts[name].directory_id
        others = [host.cluster_id for host in self.hosts.values() if host.name != name]
        some_wait = any(host.node is not None and not host.node.is_listed for host in self.hosts.values())
        return all(
            lost not in voters
            or self.has_majority(cluster_id, without=lost)
            or (cluster_id not in others and not some_wait)
            for cluster_id, voters in self.voters_of.items()
        )

    def has_majority(self, cluster_id: str, *, without: bytes | None = None) -> bool:
        """Whether a majority of a cluster's first voters have their disks."""
        voters = {*self.voters_of[cluster_id]} - {without}
        left = {host.directory_id for host in self.hosts.values()}
        return 2 * len(left & voters) > len(self.voters_of[cluster_id])

    def wipe(self, name: str) -> None:
        """Give a host that is down another disk."""
        host = self.hosts[name]
        assert not host.is_up
        self.note(f"{name} is wiped")
        self.lost.add(host.directory_id)
        host.disk = MortalMemoryDisk()

    def _guarded(self, host: FormationHost, action: Callable[[], None]) -> None:
        """Do something that changes the disk, at which the process may die; check all disks."""
        try:
            action()
        except _DiedError:
            self.kill(host.name, loses_power=self.randomness.random() < 0.5)
            self.on_death(host.name)
        self.check()

    # --- what a process does ------------------------------------------------------------------------------------------

    def _settle(self, host: FormationHost) -> None:
        """As ``Formation`` does: keep what follows on the disk, then format."""
        node = host.node
        assert node is not None
        while (record := node.next_record()) is not None:
            self.save(host, record)
            node.persisted(record)
            if record.cluster_id is not None and record.promise is not None and record.is_first_voter:
                self._check_replaced(record.cluster_id)
                self.voters_of.setdefault(record.cluster_id, record.promise.directory_ids)
            self.note(f"{host.name} has {_shown(record)}")
            self.check()
            if self.may_die(host):
                raise _DiedError
        if node.record.cluster_id is None:
            return
        self.tell_decision(host)
        if self.may_die(host):
            raise _DiedError
        host.store.format(host.node_id, node.record, "CONTROLLER", self.randomness, int(self.now_ms))
        host.node = None
        self.note(f"{host.name} is formatted")

    def save(self, host: FormationHost, record: FormationRecord) -> None:
        host.store.save(record)

    def tell_decision(self, host: FormationHost) -> None:
        for place in range(1, len(host.nodes) + 1):
            self._ask(host, place, host.life)

    def _poll(self, host: FormationHost, life: int) -> None:
        if not host.is_up or host.life != life or host.node is None:
            return
        for place in range(1, len(host.nodes) + 1):
            self._ask(host, place, life)
        self.at(POLL_MS, lambda: self._poll(host, life))

    def _ask(self, host: FormationHost, place: int, life: int) -> None:
        if host.node is None or place == host.node_id or host.is_paused:
            return
        asked, asked_at = self.hosts.get(host.nodes[place - 1].host), self.now_ms
        if asked is None:
            return
        frame = encode_request(host.node.statement, 1)

        def arrive() -> None:
            said = self._respond(asked, decode_request(memoryview(frame)[4:])[1])
            if said is not None:
                self._send(asked.name, host.name, lambda: self._take(host, life, asked_at, place, said), is_late=False)

        self._send(host.name, asked.name, arrive)

    def _send(self, source: str, target: str, arrive: Callable[[], None], *, is_late: bool = True) -> None:
        def deliver() -> None:
            if self.hosts[target].is_paused:
                self.at(POLL_MS, deliver)
            else:
                arrive()

        roll = self.randomness.random
        for _ in range(2 if roll() < self.doubles else 1):
            if (source, target) in self.cut or roll() < self.loss:
                continue
            most = 60_000.0 if is_late and roll() < self.lateness else 2500.0 if roll() < self.lateness else 20.0
            self.at(self.randomness.uniform(0.5, most), deliver)

    def _respond(self, host: FormationHost, said: FormationStatement) -> FormationStatement | None:
        """The response as bytes and back, None where the process is down or dies."""
        if not host.is_up:
            return None
        if host.node is None:
            meta = read_meta_properties(host.disk, FOLDERS[1])
            assert meta is not None and meta.directory_id is not None
            statement = FormationStatement(host.node_id, (), meta.directory_id, None, meta.cluster_id)
        else:
            node = host.node
            node.handle_request(said)
            self._guarded(host, lambda: self._settle(host))
            if not host.is_up:
                return None
            statement = node.statement
        return decode_response(encode_response(statement, 1)[4:])

    def say(self, name: str, said: FormationStatement) -> None:
        """A request comes to a host, maybe late."""
        self._respond(self.hosts[name], said)

    def statement(self, name: str) -> FormationStatement:
        """What the process of a host says of itself now."""
        node = self.hosts[name].node
        assert node is not None
        return node.statement

    def _take(self, host: FormationHost, life: int, asked_at: float, place: int, said: FormationStatement) -> None:
        """A response, if the process that has asked still waits for it."""
        if not host.is_up or host.life != life or host.node is None or self.now_ms - asked_at > RESPONSE_MS:
            return
        host.node.handle_response(place, said)
        self._guarded(host, lambda: self._settle(host))

    # --- what must hold -----------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raises BrokenRuleError."""
        of_cluster = {name: host.cluster_id for name, host in self.hosts.items() if host.cluster_id is not None}
        if len({*of_cluster.values()}) > 1:
            raise BrokenRuleError(f"two clusters: {of_cluster}")
        first: dict[str, bytes] = {}
        for name in of_cluster:
            host = self.hosts[name]
            path = join(join(FOLDERS[1], METADATA_PARTITION_DIR), BOOTSTRAP_ID.file_name)
            if not host.is_formatted or not host.disk.exists(path):
                continue
            self._check_voter(host, path)
            for own in (path, join(FOLDERS[1], BOOTSTRAP_CHECKPOINT), join(FOLDERS[0], BOOTSTRAP_CHECKPOINT)):
                if first.setdefault(own, host.disk.read_file(own)) != host.disk.read_file(own):
                    raise BrokenRuleError(f"{own} of {name} is another one than that of other first voters")

    def _check_replaced(self, cluster_id: str) -> None:
        for other in self.voters_of:
            if other != cluster_id and self.has_majority(other):
                raise BrokenRuleError(f"{cluster_id} takes the place of {other}, most of whose voters are there")

    def _check_voter(self, host: FormationHost, path: str) -> None:
        meta = read_meta_properties(host.disk, FOLDERS[1])
        voters = {voter.voter_id: voter.voter_directory_id for voter in first_voters(host.disk, path)}
        if meta is None or voters.get(host.node_id) != meta.directory_id:
            raise BrokenRuleError(f"{host.name} is a first voter under another directory id")
        if meta.directory_id in self.lost:
            raise BrokenRuleError(f"{host.name} is a first voter as if its disk had never been replaced")

    def check_formed(self, names: Sequence[str]) -> str:
        """All of these are of one cluster; its id. Raises BrokenRuleError."""
        found = {name: self.hosts[name].cluster_id if self.hosts[name].is_formatted else None for name in names}
        if len({*found.values()}) != 1 or None in found.values():
            complaints = {name: host.node.complaints for name, host in self.hosts.items() if host.node is not None}
            raise BrokenRuleError(f"no cluster is formed: {found}, {complaints}")
        return str(found[names[0]])


def first_voters(disk: MemoryDisk, path: str) -> list[Voter]:
    """The voters in the first snapshot of a metadata log."""
    record = SnapshotReader(disk.read_file(path), path).head.voters
    assert record is not None
    return list(record.voters)


def _shown(record: FormationRecord) -> str:
    if record.cluster_id is not None:
        return f"decided for {record.cluster_id}"
    assert record.promise is not None
    return f"promised {record.promise.cluster_id}, ballot {record.promise.ballot}"
