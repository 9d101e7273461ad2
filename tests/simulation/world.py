"""One simulated machine with one broker on it: its life, its deaths, and the log of what happened.

The broker is ``BrokerServer`` as it is, on a ``FaultyDisk``, a ``SimulatedNetwork``, workers that run on the loop, and a
clock that follows trio's. ``keep_running`` starts it again whenever it has died or its data folder has failed.

What may be lost depends on the ``Mode``: nothing when processes are killed, or when power is lost while every record is
flushed before it is acknowledged; with power losses and no flush only a prefix of each log need survive.
"""

from __future__ import annotations

import contextlib
import enum
import hashlib
import logging
import random
from collections.abc import Callable, Iterator

import trio

from ottla.base.seams import InlineWorkers
from ottla.broker.config_file import load_config
from ottla.broker.server import BrokerServer, StartError

from .faults import FaultyDisk, JumpingClock
from .network import HOST, PORT, Client, SimulatedNetwork

DATA = "/data"
_RESTART_SECONDS = (0.05, 0.5, 3.0)
_PATIENCE_SECONDS = 120.0

CONFIG = {
    "broker.id": "1",
    "log.dirs": DATA,
    "listeners": f"PLAINTEXT://{HOST}:{PORT}",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.segment.bytes": "3000",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.segment.bytes": "3000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "log.cleaner.backoff.ms": "700",
    "log.cleaner.dedupe.buffer.size": str(1 << 20),
    "log.cleaner.min.cleanable.ratio": "0.3",
    "log.retention.check.interval.ms": "900",
    "log.flush.offset.checkpoint.interval.ms": "1100",
    "log.flush.start.offset.checkpoint.interval.ms": "1300",
    "log.segment.delete.delay.ms": "400",
    "log.index.interval.bytes": "200",
    "log.message.timestamp.after.max.ms": str((1 << 63) - 1),
    "group.min.session.timeout.ms": "1000",
}


class Mode(enum.Enum):
    """How the machine fails, and so what may be lost."""

    KILLS = "kills"
    POWER_WITH_FLUSH = "power+flush"
    POWER = "power"

    @property
    def may_lose(self) -> bool:
        """Whether acknowledged records may be lost, as Kafka's contract allows with one replica and no flush."""
        return self is Mode.POWER


class Violation(AssertionError):
    """Something happened that must not."""


class World:
    """See the module. Every random choice comes from ``seed``, by ``random_for``."""

    def __init__(self, seed: int, mode: Mode) -> None:
        self.seed = seed
        self.mode = mode
        self.clock = JumpingClock()
        self.disk = FaultyDisk(self.clock.now_ms)
        self.network = SimulatedNetwork()
        self.events: list[str] = []
        self.violations: list[str] = []
        self.lives = 0
        self.ready = trio.Event()
        self.server: BrokerServer | None = None
        self.wants_stop = False
        self.power_lost = False
        """Whether the next death is that of the machine."""
        self.is_serving = False
        self.is_faulty = False
        """Whether the disk fails just now, or has failed the running broker."""
        self._scope = trio.CancelScope()
        self._rng = self.random_for("world")
        self._digest = hashlib.sha256()

    @contextlib.contextmanager
    def watching(self, logger: logging.Logger) -> Iterator[None]:
        """Write down what the broker logs, and leave the logger as it was."""
        level, handler = logger.level, BugsInTheLog(self)
        logger.setLevel(logging.WARNING)
        logger.propagate = False
        logger.addHandler(handler)
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.propagate = True
            logger.setLevel(level)

    def random_for(self, what: str) -> random.Random:
        return random.Random(f"{self.seed} {what}")

    def client(self, name: str) -> Client:
        return Client(self.network, name, self.random_for(f"network {name}"))

    # --- what happened ------------------------------------------------------------------------------------------------

    def log(self, who: str, what: str) -> None:
        line = f"{trio.current_time():9.3f} {who:12} {what}"
        self.events.append(line)
        self._digest.update(line.encode())

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    def violate(self, what: str) -> None:
        """Note that an invariant does not hold."""
        self.log("VIOLATION", what)
        self.violations.append(what)

    # --- the broker ---------------------------------------------------------------------------------------------------

    async def keep_running(self) -> None:
        """Start the broker, again and again, until ``wants_stop``."""
        while not self.wants_stop:
            await self._live()
            if self.disk.is_dead:
                survivors = self.random_for(f"power {self.lives}") if self.power_lost else None
                self.disk.revive(survivors)
            if not self.wants_stop:
                await trio.sleep(self._rng.choice(_RESTART_SECONDS))

    async def _live(self) -> None:
        self.lives += 1
        self.is_serving = True
        self.log("broker", f"starts for the {self.lives}. time")
        properties = dict(CONFIG)
        if self.mode is Mode.POWER_WITH_FLUSH:
            properties["log.flush.interval.messages"] = "1"
        server = self.server = BrokerServer(
            load_config(properties),
            network=self.network,
            clock=self.clock,
            workers=InlineWorkers(),
            disk=self.disk,
            randomness=self.random_for(f"broker {self.lives}"),
        )
        try:
            with trio.CancelScope() as self._scope:
                await server.serve(self._is_ready)
        except StartError as error:
            if not self.disk.is_dead:
                self.log("broker", f"cannot start: {error}")
                if not self.is_faulty:
                    self.violate(f"the broker does not start: {error}")
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
            self.network.cut_all()
        self.log("broker", "is gone" if self.disk.is_dead else "has stopped")

    def _died_by_itself(self, error: BaseException) -> None:
        """Stopping loudly is what a broker may do that cannot write."""
        if not self.disk.is_dead:
            self.log("broker", f"died of {error!r}")
            if not self.is_faulty:
                self.violate(f"the broker died of {error!r}")

    def _is_ready(self) -> None:
        self.log("broker", "serves")
        self.ready.set()

    def crash_at(self, count: int, where: Callable[[str], bool], *, power_lost: bool) -> None:
        """Have the broker die at its ``count``-th change of the disk from now on."""
        self.power_lost = power_lost
        self.disk.crash_at(count, where, self._died)

    def crash(self, *, power_lost: bool) -> None:
        """Have the broker die now."""
        self.power_lost = power_lost
        self.disk.crash_at(0, lambda path: True, self._died)
        self.disk.die("between two changes")

    def _died(self, what: str) -> None:
        self.log("machine" if self.power_lost else "process", f"dies at {what}")
        self.network.cut_all()
        self._scope.cancel()

    @property
    def is_offline(self) -> bool:
        """Whether the broker has given up its data folder."""
        return self.server is not None and self.server.assembly is not None and self.server.assembly.logs.is_offline

    async def restart(self) -> None:
        """Stop the broker as SIGTERM does, and return when it serves again."""
        if self.server is not None:
            self.server.stop()
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


class BugsInTheLog(logging.Handler):
    """What the broker logs with a trace is a bug of ours, unless the machine is dead or its disk fails."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.WARNING)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        world = self._world
        if world.disk.is_dead:
            return
        message = record.getMessage()
        world.log("log", f"{record.levelname} {message}")
        if record.exc_info and not world.is_faulty:
            world.violate(f"{message}: {record.exc_info[1]!r}")
