"""One simulated machine with one broker: its starts and its crashes.

The broker is the real ``BrokerServer``, with a ``FaultyDisk``, workers that run on the loop, and a clock that follows trio's.
``keep_running`` starts it again whenever it has crashed, or has stopped because its log directory has failed.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import trio

from ottla.base.network import Network
from ottla.base.seams import InlineWorkers
from ottla.broker.broker_state import BrokerLifecycleState
from ottla.broker.config_file import load_config
from ottla.broker.server import BrokerServer, StartError
from ottla.controller.zookeeper.store.cluster_home import ClusterHome

from .faults import FaultyDisk, JumpingClock
from .run import Mode, Run

DATA = "/data"
RESTART_SECONDS = (0.05, 0.5, 3.0)
_PATIENCE_SECONDS = 120.0


class Place(Protocol):
    """The surroundings of a machine."""

    @property
    def network(self) -> Network: ...

    def home(self) -> ClusterHome | None:
        """The cluster's home for a broker that is about to start; None for a store on its own disk."""
        ...

    def gone(self, *, power_lost: bool) -> None:
        """Called when the broker has crashed or stopped."""
        ...


class Machine:
    """See the module. ``rng`` decides how long the broker is away after a crash."""

    def __init__(
        self,
        run: Run,
        name: str,
        properties: Mapping[str, str],
        place: Place,
        rng: random.Random,
        restart_seconds: tuple[float, ...] = RESTART_SECONDS,
    ) -> None:
        self.name = name
        self.restart_seconds = restart_seconds
        """How long the broker is away after a crash: one of these, chosen by ``rng``."""
        self.clock = JumpingClock()
        self.disk = FaultyDisk(self.clock.now_ms)
        self.lives = 0
        self.ready = trio.Event()
        self.server: BrokerServer | None = None
        self.wants_stop = False
        self.power_lost = False
        """Whether the last crash was that of the machine, which has lost its power."""
        self._is_next_of_power = False
        self.is_serving = False
        self.is_stopping = False
        self.is_faulty = False
        """Whether the disk fails now, or has failed during this life of the broker."""
        self.is_held = False
        """Whether the broker stays away after a crash, until this is set to False; then it is back at once."""
        self.may_lose_power: Callable[[], bool] = lambda: True
        """Called at a crash of the machine; if it returns False, only the process dies."""
        self.may_refuse_to_start: Callable[[StartError], bool] = lambda error: False
        self._run = run
        self._properties = properties
        self._place = place
        self._rng = rng
        self._scope = trio.CancelScope()

    # --- life ---------------------------------------------------------------------------------------------------------

    async def keep_running(self) -> None:
        """Start the broker, again after each end, until ``wants_stop``."""
        _machine.set(self)
        while not self.wants_stop:
            await self._live()
            if self.disk.is_dead:
                survivors = self._run.random_for(f"{self._prefix}power {self.lives}") if self.power_lost else None
                self.disk.revive(survivors)
                self.power_lost = False
            if not (self.wants_stop or self.is_held):
                await trio.sleep(self._rng.choice(self.restart_seconds))
            while self.is_held and not self.wants_stop:
                await trio.sleep(0.02)

    @property
    def _prefix(self) -> str:
        return "" if self.name == "broker" else f"{self.name} "

    async def _live(self) -> None:
        self.lives += 1
        self._run.lives += 1
        self.is_serving = True
        self.is_stopping = False
        self._log(f"starts for the {self.lives}. time")
        try:
            with trio.CancelScope() as self._scope:
                await self._serve()
        except StartError as error:
            if not self.disk.is_dead:
                self._log(f"cannot start: {error}")
                if not self.is_faulty and not self.may_refuse_to_start(error):
                    self._run.violate(f"{self.name} does not start: {error}")
        except Exception as error:
            self._died_by_itself(error)
        except BaseExceptionGroup as group:
            error = group.split(trio.Cancelled)[1]
            if error is not None:
                self._died_by_itself(error)
            if not self.disk.is_dead:
                raise
        except BaseException:
            if not self.disk.is_dead:
                raise
        finally:
            self.is_serving = False
            self.ready = trio.Event()
            self._place.gone(power_lost=self.disk.is_dead and self.power_lost)
        self._log("is gone" if self.disk.is_dead else "has stopped")

    async def _serve(self) -> None:
        """One life of the broker. Raises StartError."""
        properties = dict(self._properties)
        if self._run.mode is Mode.POWER_WITH_FLUSH:
            properties["log.flush.interval.messages"] = "1"
        self.server = BrokerServer(
            load_config(properties),
            network=self._place.network,
            clock=self.clock,
            workers=InlineWorkers(),
            disk=self.disk,
            randomness=self._run.random_for(f"{self.name} {self.lives}"),
            home=self._place.home(),
        )
        await self.server.serve(self._is_ready)

    def _died_by_itself(self, error: BaseException) -> None:
        """Check why it died: a broker that cannot write may stop with an error."""
        if not self.disk.is_dead:
            self._log(f"died of {error!r}")
            if not self.is_faulty:
                self._run.violate(f"{self.name} died of {error!r}")

    def _is_ready(self) -> None:
        self._log("serves")
        self.ready.set()

    def _log(self, what: str) -> None:
        self._run.log(self.name, what)

    # --- death --------------------------------------------------------------------------------------------------------

    def crash_at(self, count: int, where: Callable[[str], bool], *, power_lost: bool) -> None:
        """Crash at the ``count``-th change of the disk from now on."""
        self._is_next_of_power = power_lost
        self.disk.crash_at(count, where, self._died)

    def crash(self, *, power_lost: bool) -> None:
        """Crash now."""
        self._is_next_of_power = power_lost
        self.disk.crash_at(0, lambda path: True, self._died)
        self.disk.die("between two changes")

    def spare(self) -> None:
        """Cancel a crash that has not happened yet."""
        self.disk.crash_at(0, lambda path: True, lambda what: None)

    def _died(self, what: str) -> None:
        is_of_power = self._is_next_of_power and self.may_lose_power()
        self.power_lost = self.power_lost or is_of_power  # what was lost before the next start stays lost
        self._run.log("machine" if is_of_power else "process", f"{self._prefix}dies at {what}")
        self._place.gone(power_lost=self.power_lost)
        self._scope.cancel()

    @property
    def is_offline(self) -> bool:
        """Whether the broker has given up its log directory."""
        return self.server is not None and self.server.assembly is not None and self.server.assembly.logs.is_offline

    @property
    def stops_by_itself(self) -> bool:
        """Whether the broker is on its way to a stop that nobody asked for: it cannot go on."""
        is_stopping = self.server is not None and self.server.state in (
            BrokerLifecycleState.PENDING_CONTROLLED_SHUTDOWN,
            BrokerLifecycleState.SHUTTING_DOWN,
        )
        return self.is_serving and is_stopping and not self.is_stopping

    def stop_soon(self) -> None:
        """Stop the broker as SIGTERM does."""
        self.is_stopping = True
        if self.server is not None:
            self.server.stop()

    async def restart(self) -> None:
        """Stop the broker as SIGTERM does, and return when it serves again."""
        self.stop_soon()
        lives = self.lives
        with trio.fail_after(_PATIENCE_SECONDS):
            while self.lives == lives:
                await trio.sleep(0.05)
            await self.wait_ready()

    async def wait_ready(self) -> None:
        """Return once the broker serves. Raises trio.TooSlowError."""
        with trio.fail_after(_PATIENCE_SECONDS):
            while not self.ready.is_set():
                await trio.sleep(0.02)

    async def stop(self) -> None:
        """Stop the broker for good. Raises trio.TooSlowError."""
        self.wants_stop = True
        self.stop_soon()
        with trio.fail_after(60):
            while self.is_serving:
                await trio.sleep(0.1)


_machine: contextvars.ContextVar[Machine | None] = contextvars.ContextVar("machine", default=None)
"""The machine to whose broker the running task belongs."""


@contextlib.contextmanager
def watching(run: Run, logger: logging.Logger) -> Iterator[None]:
    """A context that records what the brokers log."""
    level, handler = logger.level, BugsInTheLog(run)
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = True
        logger.setLevel(level)


class BugsInTheLog(logging.Handler):
    """A logged traceback is a bug, unless the machine has crashed or its disk fails."""

    def __init__(self, run: Run) -> None:
        super().__init__(logging.WARNING)
        self._run = run

    def emit(self, record: logging.LogRecord) -> None:
        machine = _machine.get()
        if machine is None or machine.disk.is_dead:
            return
        message = record.getMessage()
        self._run.log("log" if machine.name == "broker" else f"log {machine.name}", f"{record.levelname} {message}")
        if record.exc_info and not machine.is_faulty:
            self._run.violate(f"{machine.name}: {message}: {record.exc_info[1]!r}")
