"""The nemesis: faults one after the other, sometimes two at a time, in an order that a seed determines; it restarts nodes.

Every fault that is possible comes once before any comes again.
"""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from .fault import Fault
from .faults import FAULTS
from .history import Act, Recorder, Type
from .system import System
from .violations import Kind, Violation

_NAME = "nemesis"
_PAUSE_S = (1.0, 6.0)
_TOGETHER = 0.3
"""The probability of a second fault together with the first."""
_WHOLE_S = 60.0
_LOOK_S = 0.25


class Nemesis:
    """``done`` counts the faults by name; ``violations`` are the nodes that have ended without a reason."""

    def __init__(self, system: System, recorder: Recorder, seed: int, names: Sequence[str] = ()) -> None:
        self._system = system
        self._recorder = recorder
        self._rng = random.Random(seed)
        self._kinds = [kind for kind in FAULTS if kind.is_possible(system) and (not names or kind.name in names)]
        self._bag: list[type[Fault]] = []
        self.done: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.violations: list[Violation] = []

    def run(self, seconds: float, is_over: Callable[[], bool] = lambda: False) -> None:
        """Do one fault after the other for this long; all are undone when it returns."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not is_over():
            faults = list(self._next())
            begun: list[Fault] = []
            try:
                for fault in faults:
                    self._begin(fault)
                    begun.append(fault)
                if begun:
                    self._wait(self._rng.uniform(*begun[0].lasts_s))
            finally:
                for fault in reversed(begun):
                    self._end(fault)
            self.revive()
            self._wait(self._rng.uniform(*_PAUSE_S))

    def _next(self) -> Iterator[Fault]:
        first = self._draw()
        is_double = self._rng.random() < _TOGETHER and not first.is_alone
        yield first(self._system, random.Random(self._rng.getrandbits(32)))
        if is_double:
            second = self._draw()
            if second.is_alone or second is first:
                self._bag.append(second)  # its turn is the next
            else:
                yield second(self._system, random.Random(self._rng.getrandbits(32)))

    def _draw(self) -> type[Fault]:
        if not self._bag:
            self._bag = self._rng.sample(self._kinds, len(self._kinds))
        return self._bag.pop()

    def _begin(self, fault: Fault) -> None:
        if fault.runs_whole:
            reason = self._system.wait_whole(_WHOLE_S)
            if reason is not None:
                self._tell(f"no {fault.name}, for {reason}")
                return
        self._tell(f"begin of {fault.name}")
        self.done[fault.name] += 1
        try:
            self._tell(fault.begin())
        except (RuntimeError, AssertionError, subprocess.TimeoutExpired) as error:
            self._found(f"{fault.name}: {error}")

    def _end(self, fault: Fault) -> None:
        try:
            fault.end()
        except (RuntimeError, AssertionError, subprocess.TimeoutExpired) as error:
            self._found(f"end of {fault.name}: {error}")
        self._tell(f"end of {fault.name}")

    def _tell(self, what: str) -> None:
        self._recorder.add(_NAME, Type.INFO, Act.FAULT, note=what)

    def _found(self, what: str) -> None:
        self.violations.append(Violation(Kind.PROCESS_ENDED, what))
        self._tell(what)

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(min(_LOOK_S, left))
            self._judge()

    def _judge(self) -> None:
        """Note, once, each node that has ended by itself."""
        for machine in self._system.machines:
            status = machine.process.exit_status
            if machine.process.is_running or machine.has_been_judged or status in (None, -signal.SIGKILL):
                continue
            if status != machine.process.clean_exit:
                machine.has_been_judged = True
                if machine.may_have_ended:
                    self.ended[machine.host] += 1
                    self._tell(f"node {machine.number} has ended itself with {status}, as it may")
                else:
                    self._found(f"node {machine.number} has ended itself with status {status}")

    def revive(self) -> None:
        """Start the nodes that do not run. If one does not start, that is tried again the next time."""
        self._judge()
        ended = [machine for machine in self._system.machines if not machine.process.is_running]
        for machine in ended:
            machine.has_been_judged = True  # for a start that fails
        try:
            failures = self._system.start_nodes(ended)
        except AssertionError as error:
            self._found(f"no broker is started: {error}")
            return
        for machine in ended:
            if machine in failures:
                self._found(f"node {machine.number} does not start: {failures[machine]}")
            else:
                self._tell(f"node {machine.number} is started")
                machine.has_been_judged = False
        for machine in self._system.machines:
            machine.may_end_no_more(is_new=machine in ended)
