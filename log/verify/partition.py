"""The check of a partition's directory: leftover files, gaps between segments, and the small files beside them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ...wire.records import RecordBatch
from ..checkpoints import (
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    CorruptFileError,
    read_leader_epochs,
    read_topic_id,
)
from ..disk import Disk, join
from ..files import (
    CLEANED_SUFFIX,
    DELETE_DIR_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_name,
    parse_file_name,
)
from ..leader_epochs import LeaderEpochCache
from ..producer_snapshot import ProducerStateEntry, decode_snapshot
from ..segment_swap import plan_swaps
from .findings import Findings, reason
from .producers import ProducerCheck
from .segments import SegmentCheck, SegmentReader
from .start import Expectations, Start, predict_start

_IS_UNREADABLE = "leaves it as it is, and a consumer that comes there fails"
_IS_REMOVED = "removes the segment"


class PartitionCheck:
    """Checks one partition's folder."""

    def __init__(self, disk: Disk, directory: str, findings: Findings, expected: Expectations) -> None:
        self._disk = disk
        self._directory = directory
        self._findings = findings
        self._expected = expected
        self._was_compacted = expected.cleaned_offset is not None
        self._segments: list[SegmentCheck] = []
        self._epochs = LeaderEpochCache()
        self._has_epochs = False
        self._epochs_are_lost = False
        self._epoch_problems: dict[bool, tuple[int, int, int]] = {}
        """The first batch of another epoch than the file says, by whether its epoch is newer than all in the file."""
        self.topic_id: bytes | None = None
        """What its ``partition.metadata`` says, once ``run`` has ended; None where it says nothing."""

    def run(self) -> None:
        """Check everything. Raises OSError."""
        names = self._leftovers()
        by_offset: dict[int, dict[str, str]] = {}
        snapshots = []
        for final_name, name in names.items():
            found = parse_file_name(final_name)
            if found is not None and found[1] in SEGMENT_SUFFIXES:
                by_offset.setdefault(found[0], {})[found[1]] = name
            elif found is not None and found[1] == SNAPSHOT_SUFFIX:
                snapshots.append(found[0])
        for offset in [offset for offset, files in by_offset.items() if LOG_SUFFIX not in files]:
            for name in by_offset.pop(offset).values():
                self._findings.add(name, "there is no .log file next to it", "removes it")
        if not by_offset:
            self._without_segments()
            return
        self._read_metadata()
        self._read_epochs()
        self._read_segments(by_offset, sorted(snapshots))
        start = predict_start(self._segments, self._expected, was_compacted=self._was_compacted)
        self._judge_segments(start)
        self._judge_epochs(start)
        self._judge_snapshots(sorted(snapshots), start)
        self._judge_checkpoints(start)

    # --- small files --------------------------------------------------------------------------------------------------

    def _leftovers(self) -> dict[str, str]:
        """The names there would be after swaps are finished, and what these files are called now."""
        names = set(self._disk.names(self._directory))
        deleted = sum(name.endswith(DELETED_SUFFIX) for name in names)
        if deleted:
            problem = (
                f"{deleted} file{'s' if deleted > 1 else ''} (*{DELETED_SUFFIX}) left of segments that are deleted"
            )
            self._findings.add("", problem, "removes the rest")
        for name in sorted(name for name in names if name.endswith(".tmp")):
            self._findings.add(name, "it was not written to its end", "removes it")
        self._was_compacted |= any(name.endswith((CLEANED_SUFFIX, SWAP_SUFFIX, DELETED_SUFFIX)) for name in names)
        names = {name for name in names if not name.endswith((DELETED_SUFFIX, ".tmp"))}
        plan = plan_swaps(self._disk, self._directory, names)
        self._add_segments(plan.taken_back, "its compaction did not come to its end", "removes it")
        self._add_segments(plan.replaced, "a compacted segment is about to replace it", "removes it")
        self._add_segments(plan.renamed, "its compaction is done except for its name", "gives it its name")
        kept = names.difference(plan.taken_back, plan.replaced)
        return {name.removesuffix(SWAP_SUFFIX): name for name in sorted(kept)}

    def _add_segments(self, names: Iterable[str], problem: str, start: str) -> None:
        """A finding for each segment that has files among these."""
        by_offset: dict[str, list[str]] = {}
        for name in names:
            by_offset.setdefault(name.split(".")[0], []).append(name)
        for files in by_offset.values():
            self._findings.add(min(files, key=lambda name: (LOG_SUFFIX not in name, name)), problem, start)

    def _read_metadata(self) -> None:
        try:
            self.topic_id = read_topic_id(self._disk, join(self._directory, PARTITION_METADATA))
        except CorruptFileError as error:
            self._findings.add(PARTITION_METADATA, reason(error), "takes the topic's id from the cluster state")
            return
        if self.topic_id is None:
            self._findings.add(PARTITION_METADATA, "it is missing", "takes the topic's id from the cluster state")

    def _read_epochs(self) -> None:
        path = join(self._directory, LEADER_EPOCH_CHECKPOINT)
        try:
            entries = read_leader_epochs(self._disk, path)
        except CorruptFileError as error:
            self._findings.add(LEADER_EPOCH_CHECKPOINT, reason(error), "rebuilds it from the batches")
            self._epochs_are_lost = True
            return
        self._epochs = LeaderEpochCache(entries)
        self._has_epochs = _ascends(entries)

    def _without_segments(self) -> None:
        start = self._expected.log_start_offset
        begins, removes = (
            f"begins an empty one at offset {start}",
            f"renames it to *{DELETE_DIR_SUFFIX}, to be removed",
        )
        self._findings.add("", "there is no segment in it", begins if start else removes)

    def _read_snapshots(self, offsets: list[int], base_offsets: list[int]) -> dict[int, list[ProducerStateEntry]]:
        """The readable ones by offset. Every clean stop leaves one that the start after the next removes unread."""
        found = {}
        for offset in offsets:
            is_newest = offset == offsets[-1] and offset > base_offsets[-1]
            if offset not in base_offsets and not is_newest:
                continue
            name = file_name(offset, SNAPSHOT_SUFFIX)
            try:
                found[offset] = decode_snapshot(self._disk.read_file(join(self._directory, name)))
            except ValueError as error:
                self._findings.add(
                    name, str(error), "continues without it, and removes it if the log would begin with it"
                )
        return found

    # --- segments -----------------------------------------------------------------------------------------------------

    def _read_segments(self, by_offset: dict[int, dict[str, str]], snapshot_offsets: list[int]) -> None:
        base_offsets = sorted(by_offset)
        snapshots = self._read_snapshots(snapshot_offsets, base_offsets)
        producers = ProducerCheck(
            self._disk, self._directory, base_offsets[0], snapshots, self._expected.cleaned_offset, self._findings
        )

        def see(batch: RecordBatch) -> None:
            self._see_epoch(batch)
            producers.see(batch)

        for base_offset in base_offsets:
            if self._segments and not self._follows(base_offset):
                break  # it cannot be judged by what comes before it
            check = SegmentReader(self._disk, self._directory, base_offset, by_offset[base_offset]).read(see)
            self._segments.append(check)
            if check.damage is not None:
                break
            aborted = producers.take_aborted()
            if TRANSACTION_INDEX_SUFFIX not in check.problems:
                problem = producers.compare_aborted(check.aborted, aborted)
                if problem is not None:
                    check.problems[TRANSACTION_INDEX_SUFFIX] = (problem, False)
        else:
            producers.compare_up_to(self._segments[-1].next_offset)
        for base_offset in base_offsets[len(self._segments) :]:
            self._segments.append(
                SegmentReader(self._disk, self._directory, base_offset, by_offset[base_offset]).read(self._see_epoch)
            )

    def _follows(self, base_offset: int) -> bool:
        """Whether a segment that begins there comes right after the last one."""
        end = self._segments[-1].next_offset
        return base_offset == end or (base_offset > end and self._was_compacted)

    def _see_epoch(self, batch: RecordBatch) -> None:
        epoch = batch.partition_leader_epoch
        start_offset = self._expected.log_start_offset or 0
        if not self._has_epochs or epoch < 0 or batch.last_offset < start_offset:
            return
        offset = max(batch.base_offset, start_offset)
        known = self._epochs.epoch_for_offset(offset)
        if known < 0 and self._epochs.epochs:
            return  # the log had begun where the first epoch does, and a crash has taken that back
        if known != epoch:
            self._epoch_problems.setdefault(epoch > self._epochs.latest_epoch, (offset, epoch, known))

    def _judge_segments(self, start: Start) -> None:
        segments = self._segments
        for slot, segment in enumerate(segments):
            previous = segments[slot - 1] if slot else None
            if previous is not None and previous.damage is None:
                self._judge_neighbours(previous, segment, slot, start)
            self._judge_damage(slot, start)
            self._judge_indexes(slot, start)

    def _judge_epochs(self, start: Start) -> None:
        """A start believes the file, except for the batches that it scans."""
        if self._epochs_are_lost:
            return
        said = self._epochs.entries()
        taken = LeaderEpochCache(said)
        for slot, segment in enumerate(self._segments):
            for epoch, first, last in segment.epochs if start.scans(slot) else ():
                taken.correct(epoch, first, last)
        taken.truncate_from_end(start.end_offset)
        if not self._has_epochs:
            consequence = "drops entries that do not fit" if _ascends(taken.entries()) else "believes it"
            self._findings.add(LEADER_EPOCH_CHECKPOINT, "its entries do not ascend", consequence)
            return
        for _, (offset, epoch, known) in sorted(self._epoch_problems.items()):
            found = taken.epoch_for_offset(offset)
            is_added = found == epoch
            if offset >= start.end_offset or (is_added and not self._expected.is_clean):
                continue  # it goes, or, after a crash, the file may not have heard of it, or of a truncation, yet
            consequence = "adds that epoch" if is_added else f"takes epoch {found} for it"
            problem = f"offset {offset} is of epoch {epoch}, and {known} by this file"
            self._findings.add(LEADER_EPOCH_CHECKPOINT, problem, "believes the file" if found == known else consequence)
            return
        if said and said[-1][1] > start.end_offset:
            problem = f"an epoch begins at {said[-1][1]}, after the end of the log, {start.end_offset}"
            self._findings.add(LEADER_EPOCH_CHECKPOINT, problem, "drops that epoch")

    def _judge_snapshots(self, offsets: list[int], start: Start) -> None:
        for offset in [offset for offset in offsets if offset > start.end_offset]:
            name = file_name(offset, SNAPSHOT_SUFFIX)
            problem = f"it is of an offset after the end of the log, {start.end_offset}"
            self._findings.add(name, problem, "removes it")

    def _judge_neighbours(self, previous: SegmentCheck, segment: SegmentCheck, slot: int, start: Start) -> None:
        is_removed = start.removes(slot)
        if segment.base_offset < previous.next_offset:
            self._findings.add(
                segment.log_name,
                f"the previous segment ends at offset {previous.next_offset - 1}",
                "removes it and all after it" if is_removed else "does not look there",
            )
        elif segment.base_offset > previous.next_offset and not self._was_compacted:
            self._findings.add(
                previous.log_name,
                f"it ends at {previous.next_offset}, and the next segment begins at {segment.base_offset}",
                "removes the segments behind it" if is_removed else "does not look there",
            )

    def _judge_damage(self, slot: int, start: Start) -> None:
        segment = self._segments[slot]
        if segment.damage is None:
            return
        partition = os.path.basename(self._directory)
        consequence = f"{_IS_UNREADABLE}; 'ottla set-aside DATA_DIR {partition} {segment.next_offset}' takes it out"
        if start.removes(slot):
            consequence = _IS_REMOVED
        elif start.scans(slot):
            consequence = f"cuts the log at offset {segment.next_offset}"
            later = len(self._segments) - slot - 1
            if later:
                consequence += f" and removes {later} segment{'s' if later > 1 else ''} behind it"
        problem = f"after offset {segment.next_offset}, at position {segment.valid_size}, no valid batch follows"
        self._findings.add(segment.log_name, f"{problem}: {segment.damage}", consequence)

    def _judge_indexes(self, slot: int, start: Start) -> None:
        segment = self._segments[slot]
        problems = dict(segment.problems)
        if segment.lags_in_time and not start.scans(slot):
            problem = f"the largest timestamp, {segment.max_timestamp}, is not its last"
            problems.setdefault(TIME_INDEX_SUFFIX, (problem, segment.lacks_times))
        for suffix, (problem, is_unreadable) in problems.items():
            if start.removes(slot):
                consequence = _IS_REMOVED
            elif start.scans(slot):
                consequence = "rebuilds it"
            elif is_unreadable:
                consequence = "rebuilds it when it is first used"
            elif suffix == INDEX_SUFFIX:
                consequence = "believes it, and rebuilds it when it turns out to be wrong"
            else:
                consequence = "believes it"
            self._findings.add(file_name(segment.base_offset, suffix), problem, consequence)

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def _judge_checkpoints(self, start: Start) -> None:
        expected, end = self._expected, start.end_offset
        if start.is_emptied:
            start_offset = max(expected.log_start_offset or 0, self._segments[0].base_offset)
            self._findings.add(
                "", f"its log start offset is {start_offset}, and it ends at {end}", "empties it and begins there"
            )
            return
        if expected.recovery_point is not None and expected.recovery_point > end:
            taken = "the end" if start.recovery_point == end else start.recovery_point
            self._findings.add(
                "", f"its recovery point is {expected.recovery_point}, and it ends at {end}", f"takes {taken} for it"
            )
        if expected.high_watermark is not None and expected.high_watermark > end:
            self._findings.add(
                "", f"its high watermark is {expected.high_watermark}, and it ends at {end}", "takes the end for it"
            )
        if expected.cleaned_offset is not None and expected.cleaned_offset > end:
            problem = f"its checkpoint says that it is compacted up to {expected.cleaned_offset}, and it ends at {end}"
            self._findings.add("", problem, "has it compacted from its beginning")


def _ascends(entries: list[tuple[int, int]]) -> bool:
    """Whether both epochs and offsets do."""
    return all(sorted(set(column)) == list(column) for column in zip(*entries, strict=True))
