"""One run: the system starts, clients work, the nemesis acts; then everything heals, is read to the end, and checked."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import confluent_kafka

from ottla.compat_tests.wire_client import Operator

from . import final_reads
from .checker import check
from .clients import PARTITIONS, PLAIN, TOPICS, Client, partitions_of
from .consumers import ConfluentMember, KafkaPythonMember, Member, begin_group
from .history import PROCESSED, READ_COMMITTED, READ_UNCOMMITTED, Act, Partition, Recorder, Type
from .nemesis import Nemesis
from .producers import TRANSACTION_TIMEOUT_S, ConfluentProducer, KafkaPythonProducer, TransactionalProducer
from .report import Report
from .system import System, running
from .transformers import Transformer
from .violations import Kind, Violation

HISTORY = "history.jsonl"
_WHOLE_S = 120.0
_CLIENTS_S = 90.0
_SETTLE_S = 1.5
"""Followers get the last high watermark with their next fetch."""
_TRANSFORM = "transform"
_UNCOMMITTED = "uncommitted"


class Run:
    """A run of ``seconds`` with faults, in ``folder``, which is emptied first; ``faults`` are names, empty for all."""

    def __init__(self, kind: str, seed: int, seconds: float, folder: Path, faults: Sequence[str] = ()) -> None:
        self.kind = kind
        self.seed = seed
        self.seconds = seconds
        self.folder = folder
        self.faults = faults
        self.violations: list[Violation] = []

    def __call__(self) -> Report:
        """Run it. Raises RuntimeError or AssertionError when the start fails."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        started = time.monotonic()
        with (
            (self.folder / HISTORY).open("w") as file,
            _errors_to(self.folder / "clients.log"),
            running(self.kind, self.folder) as system,
        ):
            recorder = Recorder(file)
            operator = Operator(system.bootstrap)
            for topic in TOPICS:
                operator.create_topic(topic, PARTITIONS, {}, system.coordination.placement)
            begin_group(system.bootstrap, _UNCOMMITTED)
            producers, transformers, members = self._clients(system, recorder)
            nemesis = Nemesis(system, recorder, self.seed, self.faults)
            clients: list[Client] = [*producers, *transformers, *members]
            for client in clients:
                client.start()
            try:
                nemesis.run(self.seconds)
                self._end(system, recorder, nemesis, producers, transformers, members)
            finally:
                for client in clients:
                    client.end()
                for client in clients:
                    client.join(5.0)
            self.violations += [*nemesis.violations, *check(recorder.events)]
            if self.violations:
                system.keep_data()
            report = Report(self, system, nemesis, clients, recorder.events, time.monotonic() - started)
        return report

    def _clients(
        self, system: System, recorder: Recorder
    ) -> tuple[Sequence[Client], Sequence[Transformer], Sequence[Member]]:
        at = system.bootstrap
        producers = [
            KafkaPythonProducer("kafka-python", at, recorder),
            ConfluentProducer("confluent", at, recorder),
            *(TransactionalProducer(f"transactions-{number}", at, recorder, self.seed) for number in (1, 2)),
        ]
        rack = system.brokers[-2].rack
        committed = {"isolation": READ_COMMITTED, "seed": self.seed}
        uncommitted = {"isolation": READ_UNCOMMITTED, "seed": self.seed}
        transformers = [
            Transformer(f"{_TRANSFORM}-{number}", at, recorder, group=_TRANSFORM, topics=[PLAIN], **committed)
            for number in (1, 2)
        ]
        members: list[Member] = [
            ConfluentMember("committed-1", at, recorder, group="committed", **committed),
            ConfluentMember("committed-2", at, recorder, group="committed", rack=rack, **committed),
            KafkaPythonMember("uncommitted-1", at, recorder, group=_UNCOMMITTED, **uncommitted),
            KafkaPythonMember("uncommitted-2", at, recorder, group=_UNCOMMITTED, **uncommitted),
        ]
        return producers, transformers, members

    # The end

    def _end(
        self,
        system: System,
        recorder: Recorder,
        nemesis: Nemesis,
        producers: Sequence[Client],
        transformers: Sequence[Transformer],
        members: Sequence[Member],
    ) -> None:
        """Heal, read everything, and wait until all clients have reached the end; anything else is a violation."""
        nemesis.revive()
        self._note(system.wait_whole(_WHOLE_S))
        self._stop(producers)
        for member in [*transformers, *members]:
            member.is_settled = True
        self._note(self._wait_for_transactions(system))
        ends = self._ends_of_plain(system)
        behind = final_reads.wait_committed(system, _TRANSFORM, ends, _CLIENTS_S)
        self._note(behind)
        self._stop(transformers)
        self._note(self._wait_for_transactions(system))
        if behind is None:
            for partition, end in ends.items():
                recorder.add(_TRANSFORM, Type.OK, Act.FINAL, partition=partition, isolation=PROCESSED, offset=end)
        time.sleep(_SETTLE_S)
        try:
            read = final_reads.read_everything(system, recorder)
        except TimeoutError as error:
            self._note(str(error))
            return
        for group, isolation in (("committed", READ_COMMITTED), (_UNCOMMITTED, READ_UNCOMMITTED)):
            self._note(final_reads.wait_committed(system, group, read[isolation], _CLIENTS_S))
        self._stop(members)

    def _note(self, what: str | None) -> None:
        if what is not None:
            self.violations.append(Violation(Kind.NOT_HEALED, what))

    def _stop(self, clients: Sequence[Client]) -> None:
        for client in clients:
            client.end()
        deadline = time.monotonic() + _CLIENTS_S
        for client in clients:
            if not client.join(max(0.0, deadline - time.monotonic())):
                self._note(f"client {client.name} hangs")

    def _wait_for_transactions(self, system: System) -> str | None:
        """Wait until no transaction is open. Returns the topic that still has one when all should have timed out."""
        operator = Operator(system.bootstrap)
        deadline = time.monotonic() + TRANSACTION_TIMEOUT_S + _CLIENTS_S
        reason: str | None = "?"
        while reason is not None and time.monotonic() < deadline:
            reason = None
            for topic in TOPICS:
                with contextlib.suppress(OSError, EOFError, AssertionError, ValueError):
                    if not operator.has_open_transaction(topic, PARTITIONS):
                        continue
                reason = f"{topic} has an open transaction, or no leader that says"
            if reason is not None:
                time.sleep(1.0)
        return reason

    def _ends_of_plain(self, system: System) -> dict[Partition, int]:
        try:
            return final_reads.ends_of(system, PLAIN)
        except confluent_kafka.KafkaException as error:
            self._note(f"{PLAIN} has no end: {error.args[0]}")
            return dict.fromkeys(partitions_of(PLAIN), 0)


@contextlib.contextmanager
def _errors_to(file: Path) -> Iterator[None]:
    """Write this process's standard error, which librdkafka uses, and kafka-python's log to a file."""
    before = os.dup(2)
    logger = logging.getLogger("kafka")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with file.open("wb") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        logger.removeHandler(handler)
        os.dup2(before, 2)
        os.close(before)
