"""The system under test: brokers and what they agree by, each process on its own host, each node with its own small disk.

``Machine`` is a node with everything that faults affect: its process, disk, clock and descriptors. The nodes are brokers, and
controllers of a quorum that are no brokers. The system is of any of the ``KINDS``.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ottla.base.errors import ErrorCode
from ottla.compat_tests import isolation
from ottla.compat_tests.brokers import BrokerProcess
from ottla.compat_tests.cut_network import LoopbackNetwork, NamespaceNetwork, Network
from ottla.compat_tests.wire_client import connect
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.schema import Message

from . import tampering
from .coordination import host_of
from .history import Partition
from .kinds import KINDS

_DISK = "192m"
_LOOK_S = 0.25
_FEW_DESCRIPTORS = 3
_TRIES = 3
_HAND_OVER_S = 40.0


class PartitionState(NamedTuple):
    """A partition as a broker reports it; the leader is -1 if there is none."""

    partition: Partition
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


class Machine:
    """A node, with id ``number``."""

    def __init__(
        self, number: int, process: BrokerProcess, is_broker: bool, disk: Path, tampering: tampering.Tampering | None
    ) -> None:
        self.number = number
        self.host = host_of(number)
        self.rack = f"rack-{number}"
        """Each has its own, so that consumers can read from it while it follows."""
        self.process = process
        self.is_broker = is_broker
        """Whether clients may ask it; else it is a controller only."""
        self.disk = disk
        self.tampering = tampering
        self._may_end_until = 0.0
        self.has_been_judged = False
        """Whether it is already noted that it has ended itself."""

    @property
    def may_have_ended(self) -> bool:
        """Whether there is, or just was, a fault because of which the node may end itself."""
        return time.monotonic() < self._may_end_until

    def may_end(self) -> None:
        """It may, from now on."""
        self._may_end_until = math.inf

    def may_end_no_more(self, *, is_new: bool) -> None:
        """The reason is gone. A node that stops because of it may be handing over what it leads; one that ``is_new`` is not."""
        self._may_end_until = 0.0 if is_new else min(self._may_end_until, time.monotonic() + _HAND_OVER_S)

    def fill_disk(self) -> None:
        """Use all free space. A second call uses space that was freed meanwhile."""
        filler = os.open(self.disk / "filler", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            while True:
                os.write(filler, b"\0" * (1 << 20))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
        finally:
            os.close(filler)

    def free_disk(self) -> None:
        """Free it again."""
        (self.disk / "filler").unlink(missing_ok=True)

    def empty_disk(self) -> None:
        """Replace it by an empty one. The node must not run."""
        assert not self.process.is_running, "the disk is in use"
        for each in self.disk.iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()

    def limit_descriptors(self) -> None:
        """Limit the descriptors to hardly more than are open now."""
        pid = self.process.pid
        count = len(os.listdir(f"/proc/{pid}/fd")) + _FEW_DESCRIPTORS
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (count, resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]))

    def free_descriptors(self) -> None:
        """Raise the limit to its maximum. No effect on a process that has ended."""
        with contextlib.suppress(ProcessLookupError):
            most = resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE)[1]
            resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, (most, most))


class System:
    """The cluster of ``kind``, which keeps everything in ``folder``; ``lacks`` says what is not possible on this machine."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.lacks: list[str] = []
        self.failed_starts = 0
        plan = KINDS[kind]
        numbers = range(1, plan.count + 1)
        self.network = self._make_network([*plan.own_hosts, *map(host_of, numbers)])
        self.coordination = plan.make(folder, self.network)
        library = tampering.build(folder)
        if library is None:
            self.lacks.append("no C compiler: clocks don't jump, and fsync is not slow")
        self.machines = [self._machine(number, node, library) for number, node in enumerate(self.coordination.nodes, 1)]

    def _make_network(self, hosts: list[str]) -> Network:
        if not isolation.is_inside():
            self.lacks.append("no namespaces: all is on 127.0.0.1, nothing is cut or slow, and no disk is full")
            return LoopbackNetwork()
        network = NamespaceNetwork(hosts)
        if not network.can_slow:
            self.lacks.append("the kernel has no tbf: no link is slow")
        return network

    def _machine(self, number: int, node: BrokerProcess, library: Path | None) -> Machine:
        disk = self.folder / f"disk-{number}"
        disk.mkdir()
        if isolation.is_inside():
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_DISK}", "none", str(disk)], check=True)
        told = tampering.Tampering(library, node.folder) if library is not None else None
        machine = Machine(number, node, node in self.coordination.brokers, disk, told)
        node.host = self.network.address(machine.host)
        node.bootstrap = node.address
        node.prefix = [*self.network.on(machine.host), *(told.environment if told is not None else [])]
        node.data_folders = [disk / "data"]
        if machine.is_broker:
            node.properties["broker.rack"] = machine.rack
        return machine

    @property
    def brokers(self) -> Sequence[Machine]:
        """The machines that clients may ask."""
        return [machine for machine in self.machines if machine.is_broker]

    @property
    def bootstrap(self) -> str:
        """host:port of every broker."""
        return self.coordination.bootstrap

    @property
    def has_small_disks(self) -> bool:
        return isolation.is_inside()

    def start(self) -> None:
        """Start everything. Raises RuntimeError and AssertionError, as ``BrokerCluster.start``."""
        self.coordination.start()

    def start_node(self, machine: Machine) -> None:
        """Start a node again; returns when it accepts connections. Raises RuntimeError when several attempts fail."""
        for reason in self.start_nodes([machine]).values():
            raise RuntimeError(reason)

    def start_nodes(self, machines: Sequence[Machine]) -> Mapping[Machine, str]:
        """Start nodes side by side, since one may need another; returns which of them do not start, and why.

        On a very busy machine a broker's session may expire before it has started, and it ends, as Kafka's broker does; so
        several attempts are made.
        """
        failures: dict[Machine, str] = {}
        waiting = list(machines)
        for left in reversed(range(_TRIES)):
            begun, waiting = waiting, []
            for machine in begun:
                self.coordination.before_start(machine.process)
                machine.process.launch()
            for machine in begun:
                try:
                    machine.process.wait_ready()
                except RuntimeError as error:
                    if not left or machine.process.is_running:
                        failures[machine] = str(error)
                    else:
                        self.failed_starts += 1
                        waiting.append(machine)
        return failures

    def stop_node(self, machine: Machine) -> None:
        """SIGTERM, if it runs, and wait for its end. Raises AssertionError if that is not a clean one."""
        if machine.process.is_running:
            self.coordination.stop(machine.process)

    def reassign(self, partition: Partition, replicas: Sequence[int]) -> str:
        """Ask the controller to move a partition to these brokers. Returns the name of the error, ``NONE`` for success."""
        moved = ReassignablePartition(partition_index=partition.number, replicas=list(replicas))
        topic = ReassignableTopic(name=partition.topic, partitions=[moved])
        answer = self._administer(AlterPartitionReassignmentsRequest(timeout_ms=10_000, topics=[topic]))
        if answer is None:
            return "no answer"
        codes = [answer.error_code, *(part.error_code for each in answer.responses for part in each.partitions)]
        return ErrorCode(next((code for code in codes if code), 0)).name

    def is_moving(self) -> bool | None:
        """Whether reassignments are in progress; None if the controller does not answer."""
        answer = self._administer(ListPartitionReassignmentsRequest(timeout_ms=10_000, topics=None))
        return None if answer is None or answer.error_code else bool(answer.topics)

    def _administer(self, request: Message) -> Any:
        for broker in self.coordination.administrators():
            with contextlib.suppress(OSError, EOFError), connect(broker.address, 15.0) as connection:
                return connection.call(request, 0)
        return None

    def start_all(self) -> None:
        """Start the nodes that do not run. Raises RuntimeError."""
        for reason in self.start_nodes(
            [machine for machine in self.machines if not machine.process.is_running]
        ).values():
            raise RuntimeError(reason)

    def partitions(self, machine: Machine) -> list[PartitionState] | None:
        """All partitions as a broker reports them; None if it does not answer."""
        try:
            with connect(machine.process.address, 3.0) as connection:
                answer = connection.call(MetadataRequest(topics=None), 12)
        except (OSError, EOFError):
            return None
        return [
            PartitionState(
                Partition(topic.name, part.partition_index),
                part.leader_id if part.error_code != ErrorCode.LEADER_NOT_AVAILABLE else -1,
                tuple(part.replica_nodes),
                tuple(part.isr_nodes),
            )
            for topic in answer.topics
            for part in topic.partitions
        ]

    def any_partitions(self) -> list[PartitionState]:
        """All partitions as reported by the first broker that answers; none if no broker does."""
        return next(filter(None, map(self.partitions, self.brokers)), [])

    def what_is_not_whole(self) -> str | None:
        """Why not every broker reports every replica as in sync; None if they do."""
        if self.is_moving():
            return "replicas are being moved"
        if (reason := self.coordination.what_is_not_whole()) is not None:
            return reason
        for machine in self.machines:
            if not machine.process.is_running:
                return f"node {machine.number} does not run"
        for machine in self.brokers:
            states = self.partitions(machine)
            if states is None:
                return f"broker {machine.number} does not answer"
            for state in states:
                if state.leader < 0 or sorted(state.in_sync) != sorted(state.replicas):
                    return f"broker {machine.number} says {state}"
        return None

    def wait_whole(self, limit_s: float) -> str | None:
        """Wait until every replica is in sync. Returns what is still wrong after ``limit_s``."""
        deadline = time.monotonic() + limit_s
        while (reason := self.what_is_not_whole()) is not None and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        return reason

    def keep_data(self) -> None:
        """Copy the nodes' data to their logs' folder, after something was found."""
        for machine in self.machines:
            source, target = machine.disk / "data", machine.process.folder / "data"
            if source.exists():
                subprocess.run(["cp", "-r", "--sparse=always", str(source), str(target)], check=False)

    def close(self) -> None:
        """End everything."""
        self.coordination.close()


@contextlib.contextmanager
def running(kind: str, folder: Path) -> Iterator[System]:
    """A context with a started system."""
    system = System(kind, folder)
    try:
        system.start()
        yield system
    finally:
        system.close()
