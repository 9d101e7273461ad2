"""The folder of one partition: leftovers, segments in a row, and the small files beside them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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
from ..producer_state import ProducerState, decode_snapshot
from ..segment_swap import plan_swaps
from .findings import Findings, reason
from .producers import ProducerCheck
from .segments import SegmentCheck, SegmentReader

_IS_UNREADABLE = "reads it as it is, and what is behind the damage cannot be consumed"


@dataclass(frozen=True)
class Expectations:
    """What the data folder says of a partition: its checkpoints, None for no entry, and whether the stop was clean."""

    is_clean: bool
    recovery_point: int | None = None
    log_start_offset: int | None = None
    high_watermark: int | None = None
    cleaned_offset: int | None = None


class PartitionCheck:
    """Checks one partition's folder. ``topic_id`` is what its ``partition.metadata`` says, once ``run`` has ended."""

    def __init__(self, disk: Disk, directory: str, findings: Findings, expected: Expectations) -> None:
        self._disk = disk
        self._directory = directory
        self._findings = findings
        self._expected = expected
        self._was_compacted = expected.cleaned_offset is not None
        self._segments: list[SegmentCheck] = []
        self._epochs = LeaderEpochCache()
        self._has_epochs = False
        self._epoch_problem: str | None = None
        self.topic_id: bytes | None = None

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
                self._findings.add(name, "there is no .log file beside it", "removes it")
        if not by_offset:
            self._without_segments()
            return
        self._read_metadata()
        self._read_epochs()
        self._read_segments(by_offset, sorted(snapshots))
        self._judge_segments()
        self._judge_checkpoints()

    # --- small files --------------------------------------------------------------------------------------------------

    def _leftovers(self) -> dict[str, str]:
        """The names there would be after swaps are finished, and what these files are called now."""
        names = set(self._disk.names(self._directory))
        deleted = sum(name.endswith(DELETED_SUFFIX) for name in names)
        if deleted:
            problem = (
                f"{deleted} file{'s' if deleted > 1 else ''} (*{DELETED_SUFFIX}) left of segments that are deleted"
            )
            self._findings.add("", problem, "removes what is left")
        for name in sorted(name for name in names if name.endswith(".tmp")):
            self._findings.add(name, "it was not written to its end", "removes it")
        self._was_compacted |= any(name.endswith((CLEANED_SUFFIX, SWAP_SUFFIX, DELETED_SUFFIX)) for name in names)
        names = {name for name in names if not name.endswith((DELETED_SUFFIX, ".tmp"))}
        plan = plan_swaps(self._disk, self._directory, names)
        self._add_segments(plan.taken_back, "its compaction did not come to its end", "removes it")
        self._add_segments(plan.replaced, "a compacted segment is about to replace it", "removes it")
        self._add_segments(plan.renamed, "its compaction is done but for its name", "gives it its name")
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
            self._findings.add(LEADER_EPOCH_CHECKPOINT, reason(error), "makes it anew from the batches")
            return
        self._has_epochs = True
        for column in zip(*entries, strict=True):
            if sorted(set(column)) != list(column):
                self._findings.add(LEADER_EPOCH_CHECKPOINT, "its entries do not ascend", "believes it")
                self._has_epochs = False
                return
        self._epochs = LeaderEpochCache(entries)

    def _without_segments(self) -> None:
        start = self._expected.log_start_offset
        self._findings.add(
            "", "there is no segment in it", f"begins an empty one at offset {start}" if start else "passes over it"
        )

    def _read_snapshots(self, offsets: list[int], base_offsets: list[int]) -> dict[int, list[ProducerState]]:
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
                self._findings.add(name, str(error), "does without it, and removes it where it would begin with it")
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
            check = SegmentReader(self._disk, self._directory, base_offset, by_offset[base_offset]).read(see)
            self._segments.append(check)
            if check.damage is not None:
                break  # what follows cannot be judged by what comes before it
            aborted = producers.take_aborted()
            if TRANSACTION_INDEX_SUFFIX not in check.problems:
                consequence = self._index_consequence(check, base_offsets[-1])
                producers.compare_aborted(base_offset, check.aborted, aborted, consequence)
        else:
            end = self._segments[-1].next_offset
            producers.compare_up_to(end)
            for offset in [offset for offset in snapshots if offset > end]:
                name = file_name(offset, SNAPSHOT_SUFFIX)
                self._findings.add(name, f"it is of an offset behind the end of the log, {end}", "removes it")
        for base_offset in base_offsets[len(self._segments) :]:
            self._segments.append(
                SegmentReader(self._disk, self._directory, base_offset, by_offset[base_offset]).read(self._see_epoch)
            )

    def _see_epoch(self, batch: RecordBatch) -> None:
        epoch = batch.partition_leader_epoch
        start_offset = self._expected.log_start_offset or 0
        if not self._has_epochs or self._epoch_problem is not None or epoch < 0 or batch.last_offset < start_offset:
            return
        offset = max(batch.base_offset, start_offset)
        known = self._epochs.epoch_for_offset(offset)
        if known < 0 and self._epochs.epochs:
            return  # the log had begun where the first epoch does, and a crash has taken that back
        if epoch > self._epochs.latest_epoch and not self._expected.is_clean:
            return  # the file has not heard of it yet, and recovery finds it
        if known != epoch:
            self._epoch_problem = f"offset {offset} is of epoch {epoch}, and {known} by this file"

    def _first_doubtful(self) -> int:
        """From which segment on a start scans batches; the number of segments when it scans none."""
        segments, expected = self._segments, self._expected
        recovery_point = expected.recovery_point or 0
        is_clean = expected.is_clean
        for segment in segments:
            if segment.problems.get(TRANSACTION_INDEX_SUFFIX, ("", False))[1]:
                recovery_point, is_clean = min(recovery_point, segment.base_offset), False
                break
        if is_clean:
            if not self._is_end_found(segments[-1]):
                return len(segments) - 1
            return len(segments)
        return max((slot for slot, s in enumerate(segments) if s.base_offset <= recovery_point), default=0)

    @staticmethod
    def _is_end_found(segment: SegmentCheck) -> bool:
        problem = segment.problems.get(INDEX_SUFFIX)
        return problem is None and segment.walkable_size == segment.size

    def _judge_segments(self) -> None:
        doubtful = self._first_doubtful()
        segments = self._segments
        for slot, segment in enumerate(segments):
            previous = segments[slot - 1] if slot else None
            if previous is not None and previous.damage is None:
                self._judge_neighbours(previous, segment, slot > doubtful)
            self._judge_damage(slot, is_doubted=slot >= doubtful)
            self._judge_indexes(slot, is_doubted=slot >= doubtful)
        end = segments[-1].next_offset
        if self._epoch_problem is not None:
            start = (
                "believes the file" if doubtful == len(segments) else "adds epochs that are newer than the file's last"
            )
            self._findings.add(LEADER_EPOCH_CHECKPOINT, self._epoch_problem, start)
        elif self._epochs.start_offsets and self._epochs.start_offsets[-1] > end:
            problem = f"an epoch begins at {self._epochs.start_offsets[-1]}, behind the end of the log, {end}"
            self._findings.add(LEADER_EPOCH_CHECKPOINT, problem, "drops that epoch")

    def _judge_neighbours(self, previous: SegmentCheck, segment: SegmentCheck, is_doubted: bool) -> None:
        if segment.base_offset < previous.next_offset:
            self._findings.add(
                segment.log_name,
                f"the segment before it goes on to offset {previous.next_offset - 1}",
                "removes it and what follows" if is_doubted else "does not look there",
            )
        elif segment.base_offset > previous.next_offset and not self._was_compacted:
            self._findings.add(
                previous.log_name,
                f"it ends at {previous.next_offset}, and the next segment begins at {segment.base_offset}",
                "removes the segments behind it" if is_doubted else "does not look there",
            )

    def _judge_damage(self, slot: int, *, is_doubted: bool) -> None:
        segment = self._segments[slot]
        if segment.damage is None:
            return
        start = _IS_UNREADABLE
        if is_doubted:
            start = f"cuts the log at offset {segment.next_offset}"
            later = len(self._segments) - slot - 1
            if later:
                start += f" and removes {later} segment{'s' if later > 1 else ''} behind it"
        problem = f"behind offset {segment.next_offset}, at position {segment.valid_size}, no valid batch follows"
        self._findings.add(segment.log_name, f"{problem}: {segment.damage}", start)

    def _index_consequence(self, segment: SegmentCheck, last_offset: int) -> str:
        """What becomes of an index of aborted transactions that can be read but is wrong."""
        recovery_point = self._expected.recovery_point or 0
        if self._expected.is_clean or (segment.next_offset <= recovery_point and segment.base_offset != last_offset):
            return "believes it"
        return "makes it anew"

    def _judge_indexes(self, slot: int, *, is_doubted: bool) -> None:
        segment = self._segments[slot]
        for suffix, (problem, is_unreadable) in segment.problems.items():
            if is_doubted:
                start = "makes it anew"
            elif is_unreadable:
                start = "makes it anew when it is first used"
            else:
                start = "believes it, and makes it anew when it turns out to be wrong"
            self._findings.add(file_name(segment.base_offset, suffix), problem, start)
        if segment.lags_in_time and not is_doubted and TIME_INDEX_SUFFIX not in segment.problems:
            name = file_name(segment.base_offset, TIME_INDEX_SUFFIX)
            problem = f"the largest timestamp, {segment.max_timestamp}, is not its last"
            self._findings.add(name, problem, "believes it")

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def _judge_checkpoints(self) -> None:
        expected, end = self._expected, self._segments[-1].next_offset
        start_offset = expected.log_start_offset or 0
        if start_offset > end:
            self._findings.add(
                "", f"its log start offset is {start_offset}, and it ends at {end}", "empties it and begins there"
            )
            return
        if expected.recovery_point is not None and expected.recovery_point > end:
            self._findings.add(
                "", f"its recovery point is {expected.recovery_point}, and it ends at {end}", "takes the end for it"
            )
        if expected.high_watermark is not None and expected.high_watermark > end:
            self._findings.add(
                "", f"its high watermark is {expected.high_watermark}, and it ends at {end}", "takes the end for it"
            )
        if expected.cleaned_offset is not None and expected.cleaned_offset > end:
            problem = f"it is said to be compacted up to {expected.cleaned_offset}, and it ends at {end}"
            self._findings.add("", problem, "has it compacted from its beginning")
