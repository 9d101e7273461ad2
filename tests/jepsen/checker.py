"""Finds violations in a history; a pure function.

The kinds of violations (``Kind``) have the names of Jepsen's workload for Kafka where it has them. As there, these are not
violations: records of other producers between those of one transaction, and read_uncommitted readers that see aborted records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from .history import PROCESSED, READ_COMMITTED, Act, Event, Partition, Type
from .operations import Operations, Send
from .order_checks import nonmonotonic_sends, unordered_polls
from .violations import Kind, Violation

__all__ = ["Kind", "Violation", "check"]


def check(events: Iterable[Event]) -> list[Violation]:
    """All violations in a history, in the order of ``Kind``."""
    known = Operations(events)
    found = [
        *lost_writes(known),
        *unseen(known),
        *duplicates(known),
        *inconsistent_offsets(known),
        *phantoms(known),
        *aborted_and_precommitted_reads(known),
        *torn_transactions(known),
        *unordered_polls(known),
        *nonmonotonic_sends(known),
        *two_owners(known),
        *missed_by_groups(known),
        *processed_twice(known),
    ]
    order = list(Kind)
    return sorted(found, key=lambda violation: order.index(violation.kind))


def lost_writes(known: Operations) -> Iterator[Violation]:
    """Values that were acknowledged at or below an offset that was read, and were never read.

    A transaction counts as one record: if one of its values must be there, all must.
    """
    for send in known.sends.values():
        if not known.is_acknowledged(send) or send.value in known.seen:
            continue
        if send.offset is not None and send.offset <= known.seen_to.get(send.partition, -1):
            yield _of_send(Kind.LOST_WRITE, send, f"acknowledged at offset {send.offset}, which others have passed")


def unseen(known: Operations) -> Iterator[Violation]:
    """Acknowledged values that final reads, of either isolation level, have not found."""
    readers = _final_reads(known)
    for send in known.sends.values():
        if not known.is_acknowledged(send):
            continue
        for process, values in readers[send.partition].items():
            if send.value not in values:
                yield _of_send(Kind.UNSEEN, send, f"acknowledged at offset {send.offset}, {process} has not read it")


def _final_reads(known: Operations) -> dict[Partition, dict[str, set[int]]]:
    """The values that final reads of each partition found, by process."""
    values: dict[tuple[str, Partition], set[int]] = defaultdict(set)
    for poll in known.polls:
        values[poll.process, poll.partition].update(read.value for read in poll.reads)
    readers: dict[Partition, dict[str, set[int]]] = defaultdict(dict)
    for final in known.finals:
        if final.isolation != PROCESSED:
            readers[final.partition][final.process] = values[final.process, final.partition]
    return readers


def duplicates(known: Operations) -> Iterator[Violation]:
    """Values at two places. Every producer is idempotent."""
    for value, places in known.places.items():
        if len(places) > 1:
            where = ", ".join(f"{partition} at {offset}" for partition, offset in sorted(places))
            yield Violation(Kind.DUPLICATE, f"value {value} is in {where}{_sent_by(known, value)}")


def inconsistent_offsets(known: Operations) -> Iterator[Violation]:
    """Offsets with two values."""
    for partition, offsets in known.offsets.items():
        for offset, values in offsets.items():
            if len(values) > 1:
                yield Violation(
                    Kind.INCONSISTENT_OFFSET, f"{partition} has the values {sorted(values)} at offset {offset}"
                )


def phantoms(known: Operations) -> Iterator[Violation]:
    """Values that were read in partitions to which they were not sent."""
    for poll in known.polls:
        for offset, value in poll.reads:
            send = known.sends.get(value)
            if send is None or send.partition != poll.partition:
                yield Violation(
                    Kind.PHANTOM,
                    f"{poll.process} read {value} at {offset} of {poll.partition}, where it was not sent",
                )


def aborted_and_precommitted_reads(known: Operations) -> Iterator[Violation]:
    """Values that were read though their send failed or, with read_committed, their transaction was not committed by then."""
    for poll in known.polls:
        for offset, value in poll.reads:
            send = known.sends.get(value)
            where = f"{poll.process} read {value} at {offset} of {poll.partition}"
            if send is not None and send.outcome is Type.FAIL and send.transaction is None:
                yield Violation(Kind.ABORTED_READ, f"{where}, whose send has failed")
            transaction = known.transaction_of(value)
            if transaction is None or poll.isolation != READ_COMMITTED:
                continue
            if transaction.is_aborted:
                yield Violation(
                    Kind.ABORTED_READ, f"{where}, of transaction {transaction.name}, which is not committed"
                )
            elif transaction.commit_invoked is not None and poll.index < transaction.commit_invoked:
                yield Violation(
                    Kind.PRECOMMITTED_READ,
                    f"{where}, of transaction {transaction.name}, before its commit was asked for",
                )


def torn_transactions(known: Operations) -> Iterator[Violation]:
    """Transactions of which a part was read as committed, and another part was not, though readers have passed it."""
    for transaction in known.transactions.values():
        there = [send for send in transaction.sends if READ_COMMITTED in known.seen[send.value]]
        if not there:
            continue
        for send in transaction.sends:
            if send not in there and _was_passed(known, send):
                yield _of_send(
                    Kind.TORN_TRANSACTION,
                    send,
                    f"of transaction {transaction.name} {len(there)} of {len(transaction.sends)} are there, not this one",
                )


def _was_passed(known: Operations, send: Send) -> bool:
    """Whether a read_committed reader must have seen it by now."""
    if known.end_of_final(send.partition, READ_COMMITTED) is not None:
        return True
    return send.offset is not None and any(
        read.offset > send.offset
        for poll in known.polls
        if poll.partition == send.partition and poll.isolation == READ_COMMITTED
        for read in poll.reads
    )


def two_owners(known: Operations) -> Iterator[Violation]:
    """Partitions that were assigned to two members of a group in one generation."""
    owners: dict[tuple[str, int, Partition], str] = {}
    for event in known.events:
        if event.act is Act.ASSIGN and event.group is not None and event.generation is not None:
            for partition in event.partitions:
                other = owners.setdefault((event.group, event.generation, partition), event.process)
                if other != event.process:
                    yield Violation(
                        Kind.TWO_OWNERS,
                        f"{partition} belongs to {other} and {event.process} in generation {event.generation} of {event.group}",
                    )


def missed_by_groups(known: Operations) -> Iterator[Violation]:
    """Values that a group has passed and none of its members has read: it has committed more than was read."""
    for (group, isolation), processes in _members(known).items():
        read: dict[Partition, set[int]] = defaultdict(set)
        farthest: dict[Partition, int] = {}
        for poll in known.polls:
            if poll.process in processes:
                read[poll.partition].update(each.value for each in poll.reads)
                last = max((each.offset for each in poll.reads), default=-1)
                farthest[poll.partition] = max(last, farthest.get(poll.partition, -1))
        for partition, last in farthest.items():
            for value, offset in _visible(known, partition, isolation):
                if offset < last and value not in read[partition]:
                    yield Violation(
                        Kind.GROUP_SKIP,
                        f"group {group} is beyond {last} of {partition} and has not read {value} at {offset}",
                    )


def _members(known: Operations) -> dict[tuple[str, str], set[str]]:
    """The processes that were ever members of a group, by group and isolation level."""
    group_of = {event.process: event.group for event in known.events if event.act is Act.ASSIGN}
    members: dict[tuple[str, str], set[str]] = defaultdict(set)
    for poll in known.polls:
        group = group_of.get(poll.process)
        if group is not None:
            members[group, poll.isolation].add(poll.process)
    return members


def _visible(known: Operations, partition: Partition, isolation: str) -> Iterator[tuple[int, int]]:
    """The values that were read with an isolation level, with their offsets."""
    for offset, values in known.offsets[partition].items():
        for value in values:
            if isolation in known.seen[value]:
                yield value, offset


def processed_twice(known: Operations) -> Iterator[Violation]:
    """Records with two committed results of consume-transform-produce."""
    results: dict[int, list[int]] = defaultdict(list)
    for send in known.sends.values():
        if send.source is not None and READ_COMMITTED in known.seen[send.value]:
            results[send.source].append(send.value)
    for source, values in results.items():
        if len(values) > 1:
            yield Violation(Kind.PROCESSED_TWICE, f"of {source} were made {values}")
    yield from _unprocessed(known, set(results))


def _unprocessed(known: Operations, processed: set[int]) -> Iterator[Violation]:
    """Records without a result, of a topic that was transformed to its end.

    That is so if its records are sources at all, and a ``final`` has the position of the group.
    """
    for final in known.finals:
        if final.isolation != PROCESSED:
            continue
        for value, offset in _visible(known, final.partition, READ_COMMITTED):
            if offset < final.end and value not in processed:
                yield Violation(
                    Kind.UNPROCESSED,
                    f"{final.process} has committed {final.end} of {final.partition}; of {value} at {offset} nothing was made",
                )


def _of_send(kind: Kind, send: Send, what: str) -> Violation:
    return Violation(kind, f"value {send.value}, sent by {send.process} to {send.partition}: {what}")


def _sent_by(known: Operations, value: int) -> str:
    send = known.sends.get(value)
    return "" if send is None else f"; sent by {send.process}, with {send.outcome}"
