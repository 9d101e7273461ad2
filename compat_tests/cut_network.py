"""A network of hosts for a test run, whose connections can be cut, in one direction or both, or slowed down.

Every host is a network namespace with one link, to a router in its own namespace. A connection is cut by a rule of the router
that drops its packets silently; a rule can be limited to the connections to one port. A host is slow when the queues of its
link, on both ends, are limited (``tbf``, if the kernel has it; ``netem`` is not needed). The clients, and this process, are on
the host ``CLIENTS``. Nothing outside can be reached.

Without namespaces all hosts are 127.0.0.1, and no connection can be cut.
"""

from __future__ import annotations

import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

CLIENTS = "clients"
_ROUTER = "router"
_NAMES = Path("/run/netns")
_SLOW = ("rate", "256kbit", "burst", "16kb", "latency", "2s")


class Way(NamedTuple):
    """What goes from one host to another: everything, or only what belongs to connections to a ``port`` of either."""

    sender: str
    receiver: str
    port: int = 0


class Network(ABC):
    """The hosts, by name."""

    can_cut: bool
    can_slow: bool

    @abstractmethod
    def address(self, host: str) -> str:
        """The address of a host."""

    @abstractmethod
    def on(self, host: str) -> list[str]:
        """The prefix of a command that runs on a host."""

    def cut(self, ways: Iterable[Way]) -> None:
        """Drop all packets that go these ways."""
        raise NotImplementedError

    def slow(self, hosts: Iterable[str]) -> None:
        """Slow down the links of these hosts."""
        raise NotImplementedError

    def heal(self) -> None:
        """Undo what ``cut`` and ``slow`` did."""
        return None


class LoopbackNetwork(Network):
    can_cut = False
    can_slow = False

    def address(self, host: str) -> str:
        return "127.0.0.1"

    def on(self, host: str) -> list[str]:
        return []


class NamespaceNetwork(Network):
    """Made inside ``isolation``, once. Raises OSError or CalledProcessError when the kernel lacks something."""

    can_cut = True

    def __init__(self, hosts: Sequence[str]) -> None:
        self._number = {name: number for number, name in enumerate([CLIENTS, *hosts])}
        self._rules: list[list[str]] = []
        self._slow_hosts: list[str] = []
        _NAMES.mkdir(parents=True, exist_ok=True)
        _run("mount", "-t", "tmpfs", "none", str(_NAMES))  # the names of namespaces are private to the run, too
        _run("ip", "link", "set", "lo", "up")
        _run("ip", "netns", "add", _ROUTER)
        _run(*_inside(_ROUTER), "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        _run(*_inside(_ROUTER), "ip", "link", "set", "lo", "up")
        for host in self._number:
            self._connect(host)
        self.can_slow = self._has_tbf()

    def _connect(self, host: str) -> None:
        number = self._number[host]
        here, there = f"to-{number}", f"host-{number}"
        if host != CLIENTS:
            _run("ip", "netns", "add", host)
        _run("ip", "link", "add", here, "type", "veth", "peer", "name", there)
        _run("ip", "link", "set", here, "netns", _ROUTER)
        _run(*_inside(_ROUTER), "ip", "addr", "add", f"10.77.{number}.1/24", "dev", here)
        _run(*_inside(_ROUTER), "ip", "link", "set", here, "up")
        if host != CLIENTS:
            _run("ip", "link", "set", there, "netns", host)
        on = self.on(host)
        _run(*on, "ip", "link", "set", "lo", "up")
        _run(*on, "ip", "addr", "add", f"{self.address(host)}/24", "dev", there)
        _run(*on, "ip", "link", "set", there, "up")
        _run(*on, "ip", "route", "add", "default", "via", f"10.77.{number}.1")

    def _has_tbf(self) -> bool:
        try:
            self.slow([CLIENTS])
        except subprocess.CalledProcessError:
            return False
        finally:
            self.heal()
        return True

    def address(self, host: str) -> str:
        return f"10.77.{self._number[host]}.2"

    def on(self, host: str) -> list[str]:
        return [] if host == CLIENTS else _inside(host)

    def cut(self, ways: Iterable[Way]) -> None:
        for sender, receiver, port in ways:
            hosts = ["from", self.address(sender), "to", self.address(receiver)]
            ends = [["ipproto", "tcp", end, str(port)] for end in ("sport", "dport")] if port else [[]]
            for end in ends:
                rule = [*hosts, *end, "blackhole"]
                _run(*_inside(_ROUTER), "ip", "rule", "add", *rule)
                self._rules.append(rule)

    def slow(self, hosts: Iterable[str]) -> None:
        for host in hosts:
            number = self._number[host]
            for on, device in ((_inside(_ROUTER), f"to-{number}"), (self.on(host), f"host-{number}")):
                _run(*on, "tc", "qdisc", "add", "dev", device, "root", "tbf", *_SLOW)
            self._slow_hosts.append(host)

    def heal(self) -> None:
        while self._rules:
            _run(*_inside(_ROUTER), "ip", "rule", "del", *self._rules.pop())
        while self._slow_hosts:
            host = self._slow_hosts.pop()
            number = self._number[host]
            for on, device in ((_inside(_ROUTER), f"to-{number}"), (self.on(host), f"host-{number}")):
                _run(*on, "tc", "qdisc", "del", "dev", device, "root")


ALL_PORTS = (0,)


def ways_to(senders: Iterable[str], receivers: Iterable[str], ports: Sequence[int] = ALL_PORTS) -> Sequence[Way]:
    """The ways from each sender to each receiver that is another host."""
    there = list(receivers)
    return [Way(one, other, port) for one in senders for other in there if one != other for port in ports]


def both_ways(one_side: Sequence[str], other_side: Sequence[str], ports: Sequence[int] = ALL_PORTS) -> Sequence[Way]:
    """The ways between two groups of hosts, in both directions, each once."""
    return list(dict.fromkeys([*ways_to(one_side, other_side, ports), *ways_to(other_side, one_side, ports)]))


def _inside(name: str) -> list[str]:
    return ["nsenter", f"--net={_NAMES / name}", "--"]


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=30)
