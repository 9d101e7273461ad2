"""``ottla dev-cluster``: several brokers in this process, on consecutive ports, until it is stopped.

The brokers are those of ``ottla.Cluster``, on the machine's clock; they and their controller keep their data where
``--data-dir`` says. Commands at its terminal kill, stop and start single brokers. Exit codes: 0 after a stop that was asked for,
1 when the controller failed, 2 when the cluster could not start with what it was given.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from pathlib import Path

import trio

from .. import __version__
from ..base.addresses import HIGHEST_PORT
from ..base.errors import KafkaError
from ..base.seams import SystemClock
from ..base.settings import SettingError
from ..base.system_calls import raise_descriptor_limit
from ..broker.config_file import parse_overrides, warn_of_unused
from ..broker.server import StartError
from ..log.disk import DIR_MODE, OsDisk
from ..testing.cluster import QUICK, refuse_unusable, replicas_by_default
from ..testing.restartable_broker import ClusterEnvironment
from ..testing.running_cluster import RunningCluster
from .log_output import configure_logging

_FORMER_STATE = "cluster-state"
"""A directory with the cluster's state from versions whose development clusters had no separate controller."""
_HELP = "kill N, stop N and start N act on broker N here"
_STDIN = 0


class DevCluster:
    """All brokers and their controller.

    ``properties`` are Kafka's, ``port`` is that of broker 1. Raises StartError if a port is taken.
    """

    def __init__(self, folder: Path, brokers: int, port: int, properties: Mapping[str, str]) -> None:
        self._running = RunningCluster(ClusterEnvironment(SystemClock(), brokers, properties, is_kept=True))
        self._running.controller.on_failure = self._end_without_controller
        self._stop_asked = trio.Event()
        self._folder = folder
        self.failure: str | None = None
        """A line for the user if the cluster has ended by itself."""
        for number in range(1, brokers + 1):
            self._add(folder / f"broker-{number}", properties, port + number - 1 if port else 0)

    def _add(self, folder: Path, properties: Mapping[str, str], port: int) -> None:
        try:
            member = self._running.add_member(folder, properties, lambda function: function(), port)
        except OSError as error:
            in_use = "; choose others with --port" if error.errno == errno.EADDRINUSE else ""
            raise StartError(f"{error.strerror}{in_use}") from None
        member.on_failure = functools.partial(self._tell_of_failure, member.broker_id)

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT. Raises StartError, SettingError, OSError."""
        try:
            with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                await self._running.serve(self._folder, functools.partial(self._until_stopped, signals))
        finally:
            self._running.close()

    async def _until_stopped(self, signals: AsyncIterator[int]) -> None:
        """From the start of all brokers to their stop."""
        members = self._running.members.values()
        servers = ",".join(member.address for member in members)
        print(f"Ottla {__version__}: {len(members)} brokers are ready, data in {self._folder.absolute()}", flush=True)
        print(f"bootstrap.servers={servers}", flush=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._obey)

            async def stop_on_signal() -> None:
                async for _ in signals:
                    self._stop_asked.set()

            nursery.start_soon(stop_on_signal)
            await self._stop_asked.wait()
            nursery.cancel_scope.cancel()
        if self.failure is None:
            await self._running.stop_all()

    # Commands

    async def _obey(self) -> None:
        """Carry out the lines of standard input, for as long as it can be waited for."""
        # A shell's background job is stopped by the first read of its terminal, unless it ignores that.
        signal.signal(signal.SIGTTIN, signal.SIG_IGN)
        buffered = b""
        while True:
            try:
                await trio.lowlevel.wait_readable(_STDIN)
                read = os.read(_STDIN, 4096)
            except OSError:
                return  # a file, or /dev/null, or a terminal that another job reads
            if not read:
                return
            *lines, buffered = (buffered + read).split(b"\n")
            for line in lines:
                await self._carry_out(line.decode(errors="replace").split())

    async def _carry_out(self, words: list[str]) -> None:
        match words:
            case []:
                return
            case ["kill" | "stop" | "start" as verb, number] if number in self._numbers():
                await self._change(verb, int(number))
            case _:
                print(f"ottla: {_HELP}; the brokers are {', '.join(self._numbers())}", file=sys.stderr)

    def _numbers(self) -> list[str]:
        return [str(number) for number in self._running.members]

    async def _change(self, verb: str, number: int) -> None:
        member = self._running.members[number]
        try:
            if verb == "start":
                await self._running.start(number)
            elif verb == "stop":
                await member.stop()
            else:
                await member.kill()
        except (StartError, SettingError, TimeoutError, KafkaError) as error:
            print(f"ottla: {error}", file=sys.stderr)
            return
        print(f"broker {number} {'runs' if verb == 'start' else 'is down'}", flush=True)

    # Failures

    def _tell_of_failure(self, number: int, error: Exception) -> None:
        self._running.members[number].failure = None  # told, and no reason for the others to end
        print(f"ottla: broker {number} has ended: {error}; 'start {number}' starts it again", file=sys.stderr)

    def _end_without_controller(self, error: Exception) -> None:
        self._running.controller.failure = None
        self.failure = f"the controller has ended: {error}"
        self._stop_asked.set()


@contextlib.contextmanager
def _folder(data_dir: Path | None) -> Iterator[Path]:
    """The folder of everything; without one that is given, one that goes with the cluster."""
    if data_dir is None:
        with tempfile.TemporaryDirectory(prefix="ottla-dev-cluster-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)
        return
    data_dir.mkdir(DIR_MODE, parents=True, exist_ok=True)
    lock = OsDisk().lock(str(data_dir / ".lock"))
    try:
        if (data_dir / _FORMER_STATE).exists():
            why = f"{data_dir} has the cluster of an earlier version, whose state is in {_FORMER_STATE} and not in a metadata log"
            raise StartError(f"{why}: choose another directory")
        yield data_dir
    finally:
        lock.close()


def run(brokers: int, port: int, data_dir: Path | None, override: Iterable[str], log_level: str) -> int:
    """Start a cluster and serve until SIGTERM or SIGINT; the exit code."""
    try:
        configure_logging(log_level, "text")
        given = parse_overrides(override)
        refuse_unusable(given)
        warn_of_unused(given)
    except (SettingError, ValueError) as error:
        return _refuse(str(error))
    if port + brokers - 1 > HIGHEST_PORT:
        return _refuse(f"there are no {brokers} ports from {port} on: {HIGHEST_PORT} is the highest")
    raise_descriptor_limit()
    properties = {**QUICK, **replicas_by_default(brokers), **given}
    try:
        with _folder(data_dir) as folder:
            cluster = DevCluster(folder, brokers, port, properties)
            trio.run(cluster.run, restrict_keyboard_interrupt_to_checkpoints=True)
    except BlockingIOError:
        return _refuse(f"{data_dir} belongs to a cluster that is running")
    except (StartError, SettingError, OSError) as error:
        return _refuse(str(error))
    if cluster.failure is not None:
        print(f"ottla: {cluster.failure}", file=sys.stderr)
        return 1
    return 0


def _refuse(message: str) -> int:
    print(f"ottla: {message}", file=sys.stderr)
    return 2
