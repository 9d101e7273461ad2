"""``make cluster``: three brokers that form a cluster, each in a process of its own, with their data in a folder that stays.

    cluster.py [--brokers 3] [--port 9092] [--folder data/cluster] [--override NAME=VALUE]... [--zookeeper]

Each is ``ottla serve`` with its number and the list of all (``cluster.nodes``), at every other port: the one after it is that of
its controller. With ``--zookeeper`` they are brokers at ports in a row, on a ZooKeeper at ``--zookeeper-port``.

Ctrl-C or SIGTERM stops all: the brokers, then ZooKeeper; a second one kills them. If a process ends by itself, a line has the
command that starts it again. The others take over when its session has ended, here after 6 s. A broker that was started again by
hand is stopped with the others. Exit status: 0 after a signal, 1 if a process could not start.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import fcntl
import os
import shlex
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from ottla.compat_tests.brokers import OttlaProcess
from ottla.compat_tests.server_process import START_TIMEOUT_S, ServerProcess
from ottla.compat_tests.zookeeper import ZooKeeperProcess
from ottla.testing.cluster import replicas_by_default
from ottla.testing.held_port import HeldPort

_LOOK_S = 0.2
_LAST_ONE_S = 8.0
if sys.platform == "darwin":
    _FLOCK, _PID, _TYPE = struct.Struct("@qqihh"), 2, 3
    _ANY_LOCK = (0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET)
else:
    _FLOCK, _PID, _TYPE = struct.Struct("@hhqqi4x"), 4, 0
    _ANY_LOCK = (fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)


class Zoo(ZooKeeperProcess):
    is_apart = True


class Broker(OttlaProcess):
    """``ottla serve`` on a server.properties of its own, by which it can be started by hand, too."""

    is_apart = True

    def command(self) -> list[str]:
        return [str(Path(sys.executable).parent / "ottla"), "serve", "--config", str(self.folder / "server.properties")]

    def launch(self) -> None:
        """With ``pid`` in its folder, for ``kill -9 $(cat data/cluster/broker-2/pid)``."""
        properties = {"listeners": f"PLAINTEXT://{self.address}", "log.dirs": self.log_dirs, **self.properties}
        text = "".join(f"{name}={value}\n" for name, value in properties.items())
        (self.folder / "server.properties").write_text(text)
        super().launch()
        (self.folder / "pid").write_text(f"{self.pid}\n")


class Node(Broker):
    """A broker with a controller at the next port."""

    def __init__(self, folder: Path, properties: Mapping[str, str], port: int) -> None:
        while True:
            super().__init__(folder, properties=properties, port=port)
            try:
                self._controller_port = HeldPort(self.port + 1)
                return
            except OSError:
                super().close()
                if port:
                    raise

    def launch(self) -> None:
        """``cluster.nodes`` says where it listens."""
        properties = {"log.dirs": self.log_dirs, **self.properties}
        (self.folder / "server.properties").write_text(
            "".join(f"{name}={value}\n" for name, value in properties.items())
        )
        super(Broker, self).launch()
        (self.folder / "pid").write_text(f"{self.pid}\n")

    def close(self) -> None:
        super().close()
        self._controller_port.close()


def main() -> int:
    """Start everything, and wait for the end."""
    asked = parse()
    folder = asked.folder.absolute()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    servers: list[ServerProcess] = []
    try:
        brokers = on_zookeeper(asked, folder, servers) if asked.zookeeper else with_controllers(asked, folder, servers)
        for broker in brokers:
            broker.launch()
        for number, broker in enumerate(brokers, 1):
            broker.wait_ready()
            tell(f"broker {number}", broker)
        print(f"bootstrap.servers={','.join(broker.address for broker in brokers)}", flush=True)
        watch(servers)
    except KeyboardInterrupt:
        pass
    except (OSError, RuntimeError) as error:
        print(f"cluster: {explained(error, asked)}", file=sys.stderr)
        return 1
    finally:
        end(servers)
    return 0


def overrides(asked: argparse.Namespace) -> dict[str, str]:
    return dict(each.split("=", 1) for each in asked.override)


def with_controllers(asked: argparse.Namespace, folder: Path, servers: list[ServerProcess]) -> list[Broker]:
    """Brokers that form a cluster by themselves; none is started yet. Raises OSError where a port is taken."""
    brokers: list[Broker] = []
    for number in range(1, asked.brokers + 1):
        own = {"node.id": str(number), "broker.session.timeout.ms": "6000", **overrides(asked)}
        port = asked.port + 2 * (number - 1) if asked.port else 0
        brokers.append(Node(made(folder / f"broker-{number}"), own, port))
        servers.append(brokers[-1])
    for broker in brokers:
        broker.properties["cluster.nodes"] = ",".join(each.address for each in brokers)
    return brokers


def on_zookeeper(asked: argparse.Namespace, folder: Path, servers: list[ServerProcess]) -> list[Broker]:
    """Brokers on a ZooKeeper that is started. Raises OSError where a port is taken: then nothing has been started."""
    zookeeper = Zoo(made(folder / "zookeeper"), port=asked.zookeeper_port, is_durable=True)
    servers.append(zookeeper)
    properties = {
        "zookeeper.connect": zookeeper.address,
        "zookeeper.session.timeout.ms": "6000",
        **replicas_by_default(asked.brokers),
        **overrides(asked),
    }
    brokers: list[Broker] = []
    for number in range(1, asked.brokers + 1):
        own = {"broker.id": str(number), **properties}
        port = asked.port + number - 1 if asked.port else 0
        brokers.append(Broker(made(folder / f"broker-{number}"), properties=own, port=port))
        servers.append(brokers[-1])
    zookeeper.start()
    tell("ZooKeeper", zookeeper)
    return brokers


def parse() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="make cluster ARGS=…", description=__doc__.splitlines()[0])
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--port", type=int, default=9092, help="that of broker 1; 0 takes free ones")
    parser.add_argument("--zookeeper", action="store_true", help="keep the cluster's state in a ZooKeeper (needs Java)")
    parser.add_argument("--zookeeper-port", type=int, default=2181)
    parser.add_argument("--folder", type=Path, default=Path("data/cluster"))
    parser.add_argument("--override", action="append", default=[], metavar="NAME=VALUE")
    return parser.parse_args()


def explained(error: Exception, asked: argparse.Namespace) -> str:
    """An error for the user; a port that is taken, with the options that choose others."""
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        options = "--port 19092 --zookeeper-port 12181" if asked.zookeeper else "--port 19092"
        kept = " --zookeeper" if asked.zookeeper else ""
        return f"{error.strerror}; choose others with: make cluster ARGS='{options}{kept}'"
    return str(error)


def made(folder: Path) -> Path:
    """A folder that is there."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def tell(name: str, server: ServerProcess) -> None:
    """A line on a server that is ready."""
    print(f"{name:<10} {server.address:<16} pid {server.pid:<8} {server.log_file}", flush=True)


def watch(servers: list[ServerProcess]) -> NoReturn:
    """Tell of each server that ends."""
    living = list(servers)
    while True:
        time.sleep(_LOOK_S)
        for server in [each for each in living if not each.is_running]:
            living.remove(server)
            print(
                f"{server.folder.name} has ended with status {server.exit_status}; its log is {server.log_file}, and it is\n"
                f"started again by: {shlex.join(server.command())}",
                file=sys.stderr,
                flush=True,
            )


def end(servers: list[ServerProcess]) -> None:
    """Stop all that runs: the brokers one after the other, each of which hands over what it leads, ZooKeeper last.

    Nodes with controllers are asked all at once, with those that were started again by hand. The last one waits for a controller
    to let it go, and there is none any more: it is killed, and checks the ends of its logs when it is started again. Another
    signal kills all.
    """
    by_hand = [pid for server in servers if isinstance(server, Broker) and (pid := started_by_hand(server))]
    killed: list[int] = []

    def kill_all(number: int, _: object) -> None:
        killed.append(number)
        for pid in [*by_hand, *(server.pid for server in servers if server.is_running)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, kill_all)
    if by_hand or any(server.is_running for server in servers):
        print(f"stopping within about {_LAST_ONE_S:g} s; Ctrl-C kills", flush=True)
    for pid in by_hand:
        os.kill(pid, signal.SIGTERM)
    for server in servers:
        if isinstance(server, Node) and server.is_running:
            os.kill(server.pid, signal.SIGTERM)
    for pid in by_hand:
        wait_for_exit(pid)
    for server in reversed(servers):
        try:
            if server.is_running:
                server.stop(_LAST_ONE_S if isinstance(server, Node) else START_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            server.kill()
        except AssertionError as error:
            if not killed:
                print(f"cluster: {error}", file=sys.stderr)
        finally:
            server.close()


def started_by_hand(broker: Broker) -> int:
    """The process that runs a broker that had ended: it has the lock of the log directory (see fcntl(2)); 0 for none."""
    if broker.is_running:
        return 0
    try:
        with (Path(broker.log_dirs.split(",")[0]) / ".lock").open("rb") as lock:
            asked = fcntl.fcntl(lock, fcntl.F_GETLK, _FLOCK.pack(*_ANY_LOCK))
    except OSError:
        return 0
    fields = _FLOCK.unpack(asked)
    return 0 if fields[_TYPE] == fcntl.F_UNLCK else fields[_PID]


def wait_for_exit(pid: int) -> None:
    """Return once a process that is not this one's child has ended; it is killed where it takes too long."""
    deadline = time.monotonic() + _LAST_ONE_S
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.kill(pid, 0)
            time.sleep(_LOOK_S)
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
