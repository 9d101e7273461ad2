"""``ottla serve --brokers N``: N brokers on one machine, each a process of its own, and their supervisor.

Each broker has an id, a port and a log directory of its own; beside that all of them listen at one address, which is the one
that
clients are given. The first one is a node of the list (``--cluster``), and so a voter; without a list it is the only voter.
Three
brokers, by default:

======  =========================  ===============  =============
id      listens at                 its controller   data
======  =========================  ===============  =============
1       9092 with the others 9093  9094             ``data``
101     9092 with the others 9095                   ``data-101``
201     9092 with the others 9096                   ``data-201``
======  =========================  ===============  =============

A broker that ends by itself is started again, after a time that grows; one that ends too often ends all. SIGTERM and SIGINT
stop
all, the first broker last, because the others want a controller to let them go; a second one kills. SIGHUP restarts one after
the
other, each once all replicas are in sync. Brokers whose supervisor is killed stop by themselves (``supervised``). The
supervisor
has no part in serving anybody, and keeps no state.

Exit codes: as of ``ottla serve``; 1 as well when a broker has ended too often, or one did not stop cleanly.
"""

from __future__ import annotations

import collections
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from .. import __version__
from ..base.addresses import DEFAULT_PORT, join_host_port, split_host_port
from ..base.settings import SettingError
from .supervised import LABEL, LIFELINE

_OTTLA = (sys.executable, "-m", __package__.partition(".")[0])
_ID_STEP = 100
"""Between the ids of the brokers of one machine: so many machines can be in one cluster."""
_DEATHS = 5
_DEATH_SECONDS = 60.0
"""So often, in so many seconds, a broker may end by itself."""
_DELAYS = (0.0, 0.5, 1.0, 2.0, 4.0)
_COMMON = ("config", "override", "cluster_secret_file", "log_level", "log_format", "trace")
"""Options that every broker gets as they are."""
_METRICS = "machine.metrics"
_OF_ONE = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "cluster.nodes",
        "console.listener",
        "listeners",
        "log.dir",
        "log.dirs",
        "machine.listener",
        _METRICS,
        "metadata.log.dir",
        "metrics.listener",
        "node.id",
        "process.roles",
        "zookeeper.connect",
    }
)
"""Properties that cannot be alike on all brokers of a machine, or are options of the command."""
_SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class BrokerPlan(NamedTuple):
    """One broker of a machine."""

    broker_id: int
    arguments: Sequence[str]
    """Those of its ``ottla serve``."""


class MachinePlan(NamedTuple):
    """The brokers of a machine, and the address at which they are reached together."""

    address: str
    brokers: Sequence[BrokerPlan]


def how_many(text: str) -> int:
    """``--brokers`` as a number: ``auto`` is one for each processor that this process may use. Raises ValueError."""
    if text == "auto":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not text.isdecimal() or not 1 <= int(text) <= _ID_STEP:
        raise ValueError(f"--brokers takes a number from 1 to {_ID_STEP}, or auto, not {text}")
    return int(text)


def plan_machine(
    count: int,
    *,
    listen: str | None = None,
    advertise: str | None = None,
    data_dir: Path | None = None,
    metrics: str | None = None,
    console: str | None = None,
    node: int | None = None,
    cluster: str | None = None,
    common: Iterable[str] = (),
) -> MachinePlan:
    """What each broker is started with. ``common`` are arguments of all. Raises ValueError for an address."""
    host, port = split_host_port(listen or f"localhost:{DEFAULT_PORT}", DEFAULT_PORT)
    number = 1 if node is None else node
    nodes = cluster or f"localhost:{port + 1}"
    entry = nodes.split(",")[number - 1] if number <= len(nodes.split(",")) else f"localhost:{port + 1}"
    _, first_port = split_host_port(entry.strip(), DEFAULT_PORT)
    told = None if advertise is None else split_host_port(advertise, DEFAULT_PORT)[0]
    folder = data_dir or Path("data" if cluster is None else f"data-{number}")
    ids = [number + _ID_STEP * index for index in range(count)]
    brokers = []
    for index, broker_id in enumerate(ids):
        own_port = first_port if index == 0 else first_port + 1 + index
        arguments = ["--node", str(broker_id), "--cluster", nodes, "--listen", join_host_port(host, own_port)]
        if told is not None:
            arguments += ["--advertise", join_host_port(told, own_port)]
        arguments += ["--data-dir", str(folder if index == 0 else folder.with_name(f"{folder.name}-{broker_id}"))]
        if metrics is not None:
            arguments += _metrics_of(index, ids, metrics)
        if console is not None and index == 0:
            arguments += ["--console", console]  # its pages are of the whole cluster
        arguments += ["--override", f"machine.listener={join_host_port(host, port)}", *common]
        brokers.append(BrokerPlan(broker_id, arguments))
    return MachinePlan(join_host_port(told or host, port), brokers)


def _metrics_of(index: int, ids: Sequence[int], metrics: str) -> list[str]:
    """The first broker serves what all have, at the address that was given, the others their own at the next ports of loopback.

    Raises ValueError.
    """
    host, port = split_host_port(metrics)
    if index:
        return ["--metrics", f"localhost:{port + index}"]
    others = ",".join(f"{broker_id}@localhost:{port + each}" for each, broker_id in enumerate(ids) if each)
    return ["--metrics", join_host_port(host, port), *(["--override", f"{_METRICS}={others}"] if others else [])]


class _Child:
    """A broker's process, from one to the next."""

    def __init__(self, plan: BrokerPlan, lifeline: int) -> None:
        self.broker_id = plan.broker_id
        self._arguments = plan.arguments
        self._lifeline = lifeline
        self._deaths: collections.deque[float] = collections.deque(maxlen=_DEATHS)
        self.process: subprocess.Popen[bytes] | None = None
        self.output: IO[bytes] | None = None
        self.is_ready = False
        self.is_asked = False
        """Whether it was asked to end, for a restart."""
        self.starts_at: float | None = 0.0
        """When it is to be started, by the monotonic clock."""

    def start(self) -> None:
        self.starts_at, self.is_ready, self.is_asked = None, False, False
        self.process = subprocess.Popen(
            [*_OTTLA, "serve", *self._arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=os.environ | {LIFELINE: str(self._lifeline), LABEL: f"broker-{self.broker_id}"},
            pass_fds=[self._lifeline],
            process_group=0,  # Ctrl-C is for the supervisor
        )
        self.output = self.process.stdout

    def ask_to_restart(self) -> None:
        self.is_asked, self.is_ready = True, False
        self.send(signal.SIGTERM)

    def send(self, number: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(number)

    def ended(self) -> int | None:
        """The exit code of a process that has ended since the last call."""
        if self.process is None or (code := self.process.poll()) is None:
            return None
        self.process, self.is_ready = None, False
        return code

    def may_start_again(self) -> bool:
        """Whether it has not ended too often; then it is started some time later."""
        now = time.monotonic()
        self._deaths.append(now)
        if len(self._deaths) == _DEATHS and now - self._deaths[0] < _DEATH_SECONDS:
            return False
        recent = sum(now - each < _DEATH_SECONDS for each in self._deaths)
        self.starts_at = now + _DELAYS[min(recent, len(_DELAYS)) - 1]
        return True


class Supervisor:
    """The process that starts the brokers and looks after them: ``run`` until all have ended."""

    def __init__(self, plan: MachinePlan) -> None:
        # The brokers inherit one end of a pipe. The other end closes with this process, however that ends: then they stop.
        lifeline, self._held = os.pipe()
        os.set_inheritable(self._held, False)
        self._plan = plan
        self._brokers = [_Child(each, lifeline) for each in plan.brokers]
        self._selector = selectors.DefaultSelector()
        self._was_ready = False
        self._stops = 0
        self._code = 0
        self._to_restart: collections.deque[_Child] = collections.deque()
        self._restarting: _Child | None = None
        self._in_sync: subprocess.Popen[bytes] | None = None
        """Waits until all replicas are in sync, after a broker was restarted."""

    def run(self) -> int:
        """The exit code."""
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(woken, False)
        # Signals arrive as bytes of a pipe that ``select`` watches, so none is lost between looking and waiting.
        signal.set_wakeup_fd(wake)
        for number in _SIGNALS:
            signal.signal(number, lambda *_: None)
        self._selector.register(woken, selectors.EVENT_READ)
        while True:
            self._start_due()
            for key, _ in self._selector.select(self._patience()):
                if key.data is None:
                    self._handle(os.read(woken, 4096))
                else:
                    self._read(key.data)
            self._go_on()
            if self._stops and all(each.process is None for each in self._brokers):
                return self._code

    def _start_due(self) -> None:
        now = time.monotonic()
        for broker in self._brokers:
            if broker.starts_at is not None and broker.starts_at <= now and not self._stops:
                broker.start()
                assert broker.output is not None
                self._selector.register(broker.output, selectors.EVENT_READ, broker)

    def _patience(self) -> float | None:
        due = [each.starts_at for each in self._brokers if each.starts_at is not None]
        return max(min(due) - time.monotonic(), 0.0) if due and not self._stops else None

    def _handle(self, numbers: bytes) -> None:
        for number in numbers:
            if number == signal.SIGHUP and self._was_ready and not self._to_restart and self._restarting is None:
                _tell("restarting the brokers, one after the other")
                self._to_restart.extend(self._brokers)
            elif number in (signal.SIGTERM, signal.SIGINT):
                _tell(f"stopping on {signal.Signals(number).name}")
                self._stop()

    def _stop(self) -> None:
        """The others first; the second time at once."""
        self._stops += 1
        others = [each for each in self._brokers[1:] if each.process is not None]
        for broker in self._brokers if self._stops > 1 else others or self._brokers[:1]:
            broker.send(signal.SIGKILL if self._stops > 1 else signal.SIGTERM)

    def _read(self, broker: _Child) -> None:
        """A broker says on its standard output that it is ready, and nothing else."""
        assert broker.output is not None
        if not os.read(broker.output.fileno(), 4096):
            self._forget_output(broker)
            return
        broker.is_ready = True
        if not self._was_ready and all(each.is_ready for each in self._brokers):
            self._was_ready = True
            ids = ", ".join(str(each.broker_id) for each in self._brokers)
            print(f"Ottla {__version__} is ready on {self._plan.address}, brokers {ids}", flush=True)

    def _go_on(self) -> None:
        """After anything may have happened."""
        for broker in self._brokers:
            if (code := broker.ended()) is not None:
                self._forget_output(broker)
                self._note_end(broker, code)
        self._restart_next()

    def _forget_output(self, broker: _Child) -> None:
        if broker.output is not None:
            self._selector.unregister(broker.output)
            broker.output.close()
            broker.output = None

    def _note_end(self, broker: _Child, code: int) -> None:
        if self._stops:
            if self._stops == 1:
                self._code = self._code or int(code != 0)
                if all(each.process is None for each in self._brokers[1:]):
                    self._brokers[0].send(signal.SIGTERM)
        elif broker.is_asked:
            broker.starts_at = 0.0
        elif code == 2 and not self._was_ready:
            self._code = code  # it has said what it was given that it cannot be started with
            self._stop()
        elif broker.may_start_again():
            _tell(f"broker {broker.broker_id} has ended ({_shown(code)}), and is started again")
        else:
            _tell(f"broker {broker.broker_id} has ended {_DEATHS} times within {_DEATH_SECONDS:.0f} s: all stop")
            self._code = 1
            self._stop()

    def _restart_next(self) -> None:
        """Go on with a restart of all that was asked for."""
        if self._stops:
            return
        if self._in_sync is not None:
            if self._in_sync.poll() is None:
                return
            if self._in_sync.returncode != 0:
                _tell("the other brokers are not restarted: it is not known that all replicas are in sync")
                self._to_restart.clear()
            self._in_sync = self._restarting = None
        if self._restarting is not None:
            if self._restarting.is_ready:
                command = [*_OTTLA, "cluster", "wait", "-b", self._plan.address]
                self._in_sync = subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0)
        elif self._to_restart:
            self._restarting = self._to_restart.popleft()
            self._restarting.ask_to_restart()


def _shown(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def _tell(text: str) -> None:
    print(f"ottla: {text}", file=sys.stderr, flush=True)


def run(brokers: str, **options: Any) -> int:
    """Run as many brokers with these options of ``ottla serve`` until they are told to stop; the exit code."""
    given = {name: options.pop(name, None) for name in _COMMON}
    common = [word for name, value in given.items() for word in _option(name, value)]
    if options.pop("console_allow_writes", False):
        common.append("--console-allow-writes")
    try:
        _check(options, given["config"], given["override"] or ())
        plan = plan_machine(how_many(brokers), common=common, **options)
    except (ValueError, SettingError) as error:
        _tell(str(error))
        return 2
    except OSError as error:
        _tell(f"cannot read {given['config']}: {error.strerror}")
        return 2
    return Supervisor(plan).run()


def _option(name: str, value: Any) -> list[str]:
    values = [] if value is None else value if isinstance(value, (list, tuple)) else [value]
    return [word for each in values for word in (f"--{name.replace('_', '-')}", str(each))]


def _check(options: dict[str, Any], config: Path | None, overrides: Iterable[str]) -> None:
    """Raises ValueError where something is said for all brokers that each has to have for itself; OSError."""
    if options.pop("zookeeper", None) is not None:
        raise ValueError("--brokers cannot be given with --zookeeper: the brokers of a machine are part of a quorum")
    named = {name.strip() for name, _, _ in (each.partition("=") for each in overrides)}
    if config is not None:
        from ..broker.config_file import read_properties

        named |= read_properties(config).keys()
    if own := sorted(named & _OF_ONE):
        raise ValueError(f"with --brokers each broker has its own {', '.join(own)}: leave that to the options")
