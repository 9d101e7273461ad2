"""What must hold at the end, when clients have stopped writing and every transaction has ended.

Where acknowledged records may be lost (``Mode.POWER``), a transaction may be there in part, or without its end marker in some
partitions, and records that a consumer has seen, or a committed offset, may be gone. But every record must be one that was
sent to its partition, none may be there twice, those of each producer must be in order, and offsets must ascend.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.base.errors import KafkaError
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

from .clients import PARTITIONS, SHRINKING, Actor
from .groups import GROUP
from .history import Commit, History, Outcome, Sent, TopicPartition, Transaction
from .readers import EARLIEST, LATEST, Reader, Stored
from .world import World

Contents = dict[TopicPartition, list[Stored]]


class Checker(Actor):
    """Reads everything and checks it. ``readers`` have read during the faults."""

    def __init__(self, world: World, history: History, readers: Iterable[Reader]) -> None:
        super().__init__(world, history, "checker")
        self._uncommitted, self._committed = readers

    async def check(self) -> Contents:
        """Check everything. Returns what is stored, for a later comparison."""
        stored: Contents = {}
        visible: Contents = {}
        for partition in PARTITIONS:
            stored[partition], visible[partition] = await self.check_records(partition)
        if not self.world.mode.may_lose:
            self._check_transactions(visible)
            await self._check_transactional_offsets()
            await self._check_commits()
        return stored

    async def check_records(self, partition: TopicPartition) -> tuple[list[Stored], list[Stored]]:
        """Check one partition. Returns its records, and the committed ones."""
        stored = await self._uncommitted.read_all(partition)
        control = self._uncommitted.control
        visible = await self._committed.read_all(partition)
        start, _ = await self._uncommitted.offset_for(partition, EARLIEST)
        self._check_partition(partition, start, stored)
        await self._check_lookups(partition, stored, control)
        end, _ = await self._uncommitted.offset_for(partition, LATEST)
        stable, _ = await self._committed.offset_for(partition, LATEST)
        if not self.world.mode.may_lose:
            if stable != end:
                self.world.violate(f"{partition} ends at {end}, but is stable up to {stable} only")
            self._check_kept(partition, start, end, stored)
            self._check_seen(partition, start, stored, visible)
            if partition[0] == "compact":
                self._check_compaction(partition, visible)
        return stored, visible

    # --- a partition --------------------------------------------------------------------------------------------------

    def _check_partition(self, partition: TopicPartition, start: int, stored: list[Stored]) -> None:
        """Offsets ascend, nothing is there twice, each producer's records are in order."""
        names: set[bytes] = set()
        last: dict[str, int] = {}
        offset = start - 1
        for one in stored:
            self._uncommitted.note(partition, one)
            if one.offset <= offset:
                self.world.violate(f"{partition}: offset {one.offset} comes behind {offset}")
            offset = one.offset
            if one.sent is None:
                continue
            if one.sent.name in names:
                self.world.violate(f"{partition}: {one.sent.name!r} is there twice, the second time at {offset}")
            names.add(one.sent.name)
            if one.sent.number < last.get(one.sent.producer, 0):
                self.world.violate(f"{partition}: {one.sent.name!r} at {offset} comes too late")
            last[one.sent.producer] = one.sent.number

    def _check_kept(self, partition: TopicPartition, start: int, end: int, stored: list[Stored]) -> None:
        """Every acknowledged record is at its offset, and the log does not start later than it may."""
        if partition[0] in ("plain", "compact"):
            latest = self.history.deleted_up_to.get(partition, 0) if partition == SHRINKING else 0
            if start > latest:
                self.world.violate(f"{partition} starts at {start}, and no records above {latest} were deleted")
        by_offset = {one.offset: one.sent for one in stored}
        for sent in self._sent_to(partition):
            if sent.offset is None or sent.offset < start:
                continue
            if sent.offset >= end:
                self.world.violate(f"{sent.name!r} was acknowledged at {sent.offset}, and {partition} ends at {end}")
            elif partition[0] != "compact" and by_offset.get(sent.offset) is not sent:
                self.world.violate(
                    f"{sent.name!r} was acknowledged at {sent.offset}; there is {by_offset.get(sent.offset)}"
                )

    def _check_seen(self, partition: TopicPartition, start: int, stored: list[Stored], visible: list[Stored]) -> None:
        """Records that consumers have read are still there."""
        if partition[0] == "compact":
            return
        for reader, contents in ((self._uncommitted, stored), (self._committed, visible)):
            there = {one.offset for one in contents}
            for (where, offset), name in reader.seen.items():
                if where == partition and offset >= start and offset not in there:
                    self.world.violate(f"{reader.name} was given {name!r} at {offset} of {partition}, and it is gone")

    def _check_compaction(self, partition: TopicPartition, visible: list[Stored]) -> None:
        """The last committed record of each key is there, unless it was a tombstone."""
        last: dict[bytes | None, Stored] = {one.record.key: one for one in visible}
        wanted: dict[bytes | None, Sent] = {}
        for sent in self._sent_to(partition):
            if sent.is_committed and (sent.key not in wanted or (wanted[sent.key].offset or 0) < (sent.offset or 0)):
                wanted[sent.key] = sent
        for key, sent in wanted.items():
            assert sent.offset is not None
            there = last.get(key)
            if sent.value is not None and (there is None or there.offset < sent.offset) and not self._may_be_gone(sent):
                self.world.violate(f"{partition} has lost the last value of {key!r}, {sent.name!r} at {sent.offset}")

    def _may_be_gone(self, sent: Sent) -> bool:
        """Whether there may be a later tombstone with unknown outcome."""
        return any(
            other.value is None
            and other.key == sent.key
            and (other.offset is None or other.offset > (sent.offset or 0))
            and (other.transaction is None or other.transaction.outcome is not Outcome.ABORTED)
            for other in self._sent_to(sent.partition)
        )

    async def _check_lookups(self, partition: TopicPartition, stored: list[Stored], control: list[Stored]) -> None:
        """Lookups by the indexes find the same as a scan; markers have times, too."""
        for one in self.rng.sample(stored, min(2, len(stored))):
            piece = await self._uncommitted.fetch(partition, one.offset, max_bytes=1)
            if not piece.records or piece.records[0].offset != one.offset:
                self.world.violate(f"{partition}: a fetch at {one.offset} gives {piece.records[:1]}")
            timestamp = one.record.timestamp + self.rng.choice((-300, 0, 300))
            wanted = min((r.offset for r in (*stored, *control) if r.record.timestamp >= timestamp), default=-1)
            found, _ = await self._uncommitted.offset_for(partition, timestamp)
            if found != wanted:
                self.world.violate(f"{partition}: the first record at {timestamp} is at {wanted}, not {found}")

    def _sent_to(self, partition: TopicPartition) -> list[Sent]:
        return [sent for sent in self.history.sent.values() if sent.partition == partition]

    # --- transactions -------------------------------------------------------------------------------------------------

    def _check_transactions(self, visible: Contents) -> None:
        """Read_committed sees whole committed transactions, and nothing else."""
        seen = {one.sent.name for contents in visible.values() for one in contents if one.sent is not None}
        seen |= set(self._committed.seen.values())
        for transaction in self.history.transactions:
            if transaction.outcome is Outcome.ABORTED:
                for record in transaction.records:
                    if record.name in seen:
                        self.world.violate(f"{record.name!r} of {transaction.name} is visible, which was aborted")
            else:
                self._check_whole(transaction, seen, visible)

    def _check_whole(self, transaction: Transaction, seen: set[bytes], visible: Contents) -> None:
        there, missing = [], []
        for record in transaction.records:
            if record.name in seen:
                there.append(record)
            elif self._must_be_visible(record, visible):
                missing.append(record)
        if missing and transaction.outcome is Outcome.COMMITTED:
            self.world.violate(
                f"{transaction.name} was committed, and {missing[0].name!r} at {missing[0].offset} is gone"
            )
        elif missing and there:
            self.world.violate(f"{transaction.name} is there in part: {there[0].name!r}, but not {missing[0].name!r}")

    def _must_be_visible(self, record: Sent, visible: Contents) -> bool:
        """Whether only an abort can make the record invisible."""
        if record.offset is None or record.partition[0] == "compact":
            return False
        contents = visible[record.partition]
        return bool(contents) and record.offset >= contents[0].offset

    async def _check_transactional_offsets(self) -> None:
        """The offsets of transactions are committed if and only if the transactions are."""
        by_group: dict[str, list[Transaction]] = {}
        for transaction in self.history.transactions:
            if transaction.offsets is not None:
                by_group.setdefault(transaction.offsets[0], []).append(transaction)
        for group, transactions in by_group.items():
            allowed = {-1}
            for transaction in transactions:
                assert transaction.offsets is not None
                if transaction.outcome is Outcome.COMMITTED:
                    allowed = {transaction.offsets[1]}
                elif transaction.outcome is Outcome.UNKNOWN:
                    allowed.add(transaction.offsets[1])
            found = (await self._offsets(group, [("plain", 0)]))["plain", 0]
            if found not in allowed:
                self.world.violate(f"{group} is at {found}; its transactions say {sorted(allowed)}")

    # --- groups -------------------------------------------------------------------------------------------------------

    async def _check_commits(self) -> None:
        """A group's offset is the last one that was acknowledged, or one whose response was lost."""
        for group in sorted({GROUP, *(name for name, _ in self.history.commits)}):
            found = await self._offsets(group, PARTITIONS)
            for partition in PARTITIONS:
                commits = self.history.commits.get((group, partition), [])
                allowed = {commit.offset for commit in commits if may_be_last(commit, commits)}
                if all(commit.answered is None for commit in commits):
                    allowed.add(-1)
                if found[partition] not in allowed:
                    what = f"{group} is at {found[partition]} in {partition}"
                    self.world.violate(f"{what}, not at one of {sorted(allowed)}")

    async def _offsets(self, group: str, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        topics: dict[str, list[int]] = {}
        for topic, number in partitions:
            topics.setdefault(topic, []).append(number)
        wanted = [OffsetFetchRequestTopics(name=topic, partition_indexes=numbers) for topic, numbers in topics.items()]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=wanted)], require_stable=True
        )
        answer = await self.insist(
            request,
            8,
            lambda a: [a.groups[0].error_code, *(p.error_code for t in a.groups[0].topics for p in t.partitions)],
        )
        return {
            (topic.name, part.partition_index): part.committed_offset
            for topic in answer.groups[0].topics
            for part in topic.partitions
        }

    # --- after another start ------------------------------------------------------------------------------------------

    async def check_same(self, before: Contents, what: str) -> None:
        """A log is unchanged after another start, except for its beginning."""
        for partition in PARTITIONS:
            if partition[0] != "plain":
                continue
            start, _ = await self._uncommitted.offset_for(partition, EARLIEST)
            now = [(one.offset, one.record) for one in await self._uncommitted.read_all(partition)]
            then = [(one.offset, one.record) for one in before[partition]]
            # A log start offset that was raised without a clean stop may be lost on some replicas.
            deleted = min(start, self.history.deleted_up_to.get(partition, 0)) if partition == SHRINKING else 0
            first = max(deleted, then[0][0] if then else 0)
            if [entry for entry in then if entry[0] >= first] != [entry for entry in now if entry[0] >= first]:
                self.world.violate(
                    f"{partition} has changed with {what}: {len(then)} records, now {len(now)} from {start}"
                )

    async def check_damaged(self, before: Contents, damaged: TopicPartition, offset: int) -> None:
        """After a bit has flipped in the batch at ``offset``: consumers detect it by the CRC, and do not accept it."""
        known = {one.offset: one.record for one in before[damaged]}
        now = await self._uncommitted.read_all(damaged)
        found = self._uncommitted.damaged
        for one in now:
            if one.sent is None or known.get(one.offset, one.record) != one.record:
                self.world.violate(f"{damaged} gives damaged bytes at {one.offset} as good: {one.record}")
        if not found and damaged[0] == "plain" and offset in known:
            self.world.violate(f"the damage in {damaged} was not found, {len(now)} of {len(known)} records are there")
        for timestamp in {one.record.timestamp for one in before[damaged]}:
            try:
                place, at = await self._uncommitted.offset_for(damaged, timestamp)
            except KafkaError as error:
                self.log(f"lookup in a damaged log: {error}")
                continue
            if place in known and known[place].timestamp != at:
                self.world.violate(f"{damaged}: a lookup gives the time {at} for offset {place}")


def may_be_last(commit: Commit, commits: list[Commit]) -> bool:
    """Whether no acknowledged commit was sent after the response to this one."""
    if commit.was_refused:
        return False
    if commit.answered is None:
        return True
    return not any(other.answered is not None and other.sent > commit.answered for other in commits)
