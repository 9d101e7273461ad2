"""The check of producer snapshots and transaction indexes against the batches of a log.

What is followed begins with the snapshot at the first segment, if there is one. A producer that a snapshot knows and the
log does not has written only batches that are deleted; one that the log knows and a snapshot does not has expired. So only
producers that both know are compared, and none in what was compacted: there batches are gone from the middle.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

from ...wire.records import RecordBatch
from ..disk import Disk
from ..files import SNAPSHOT_SUFFIX, file_name
from ..producer_snapshot import ProducerStateEntry
from ..producer_state import ProducerStateManager
from ..transaction_index import AbortedTxn
from .findings import Findings


class ProducerCheck:
    """``snapshots`` are the readable ones by offset."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        first_offset: int,
        snapshots: Mapping[int, list[ProducerStateEntry]],
        cleaned_offset: int | None,
        findings: Findings,
    ) -> None:
        self._state = ProducerStateManager(disk, directory, first_offset)
        self._cleaned_offset = cleaned_offset
        self._findings = findings
        self._is_complete = first_offset == 0 or first_offset in snapshots
        self._snapshots = snapshots
        compared_from = max(first_offset, -1 if cleaned_offset is None else cleaned_offset)
        offsets = sorted(snapshots)
        self._waiting = offsets[bisect_right(offsets, compared_from) :]
        self._aborted: list[AbortedTxn] = []
        for state in snapshots.get(first_offset, ()):
            self._state.producers[state.producer_id] = state
            if state.current_txn_first_offset >= 0:
                self._state.ongoing[state.current_txn_first_offset] = state.producer_id

    def see(self, batch: RecordBatch) -> None:
        """Take note of the next batch of the log."""
        self.compare_up_to(batch.base_offset)
        if batch.producer_id >= 0:
            aborted = self._state.update(batch)
            if aborted is not None:
                self._aborted.append(aborted)

    def compare_up_to(self, offset: int) -> None:
        """Everything below ``offset`` was seen: compare the snapshots up to there."""
        while self._waiting and self._waiting[0] <= offset:
            self._compare(self._waiting.pop(0))

    def _compare(self, offset: int) -> None:
        for found in self._snapshots[offset]:
            seen = self._state.producers.get(found.producer_id)
            problem = None if seen is None else self._difference(found, seen)
            if problem is not None:
                name = file_name(offset, SNAPSHOT_SUFFIX)
                self._findings.add(
                    name, f"producer {found.producer_id} {problem}", "believes it where it begins with it"
                )
                return

    def _difference(self, found: ProducerStateEntry, seen: ProducerStateEntry) -> str | None:
        if found.producer_epoch != seen.producer_epoch:
            return f"has epoch {found.producer_epoch} in it, and {seen.producer_epoch} in the log"
        if found.batches and seen.batches and found.last_sequence != seen.last_sequence:
            return f"has sequence {found.last_sequence} in it, and {seen.last_sequence} in the log"
        first, seen_first = found.current_txn_first_offset, seen.current_txn_first_offset
        if self._is_complete and first != seen_first:
            return f"{_transaction(first)} in it, and {_transaction(seen_first)} in the log"
        return None

    def take_aborted(self) -> list[AbortedTxn]:
        """The transactions that were seen to be aborted since the last call."""
        aborted, self._aborted = self._aborted, []
        return aborted

    def compare_aborted(self, indexed: list[AbortedTxn], aborted: list[AbortedTxn]) -> str | None:
        """Compare a segment's index with the transactions aborted in it; returns what is wrong with the index, or None."""
        said, seen = {self._identity(entry) for entry in indexed}, {self._identity(entry) for entry in aborted}
        missing = [entry.last_offset for entry in aborted if self._identity(entry) not in said]
        strays = [entry.last_offset for entry in indexed if self._identity(entry) not in seen]
        if missing:
            return f"the transaction aborted at offset {missing[0]} is not in it"
        if strays and self._is_complete and self._cleaned_offset is None:
            return f"its transaction that ends at offset {strays[0]} is not aborted there"
        return None

    def _identity(self, entry: AbortedTxn) -> tuple[int, ...]:
        """What makes two entries the same; the first batches of a compacted log's transactions may be gone."""
        return entry[:3] if self._cleaned_offset is None else (entry.last_offset,)


def _transaction(first_offset: int) -> str:
    return "is in no transaction" if first_offset < 0 else f"is in a transaction since offset {first_offset}"
