"""The state of one transactional id and its transitions, as pure functions.

The states, as DescribeTransactions names them::

    Empty ---------add partitions--------> Ongoing --EndTxn--> PrepareCommit --markers written--> CompleteCommit
      ^                                     ^    |                                                    |  |
      |                                     |    +-EndTxn, timeout, fence-> PrepareAbort -markers-> CompleteAbort
      +---InitProducerId--------------------+----------- add partitions ------------------------------+--+

A transaction is decided when the record of its Prepare state is committed: from then on only the markers are missing.

Two protocols. The *classic* one keeps the epoch until InitProducerId, a timeout or a fence bumps it. With *transactions V2*
(KIP-890) every end bumps it: the markers carry the new epoch, and the producer's next transaction uses it, so no delayed
request of one transaction can get into the next. Under V2 a producer may also abort a transaction that never got a
partition, because it does not know whether it got one. When the epochs of a producer id are used up, a new id takes over
with epoch 0.

A request that is repeated because its response was lost still comes with ``last_producer_epoch``. A new coordinator does not
know that epoch, and fences such a producer, as Kafka does.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import TopicPartition

TRANSACTIONS_V2 = 2
"""``transaction.version`` from which every transaction has an epoch of its own."""

NO_PRODUCER_ID = -1
NO_EPOCH = -1
MAX_EPOCH = (1 << 15) - 1


class TransactionStatus(enum.Enum):
    """The value is the number in the records."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def wire_name(self) -> str:
        """As DescribeTransactions and ListTransactions have it."""
        return "".join(word.capitalize() for word in self.name.split("_"))


PREPARED = (TransactionStatus.PREPARE_COMMIT, TransactionStatus.PREPARE_ABORT)
_COMPLETE = (TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT)
_ENDED_AS = {True: TransactionStatus.COMPLETE_COMMIT, False: TransactionStatus.COMPLETE_ABORT}
_PREPARED_AS = {True: TransactionStatus.PREPARE_COMMIT, False: TransactionStatus.PREPARE_ABORT}


@dataclasses.dataclass(slots=True, frozen=True)
class Transaction:
    """The state of one transactional id. Times are wall time in milliseconds."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionStatus
    updated_ms: int
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = -1
    """When the open or last transaction began; -1 before the first one."""
    previous_producer_id: int = NO_PRODUCER_ID
    """The id before the last end or InitProducerId, by which a producer whose epochs were used up is recognised."""
    next_producer_id: int = NO_PRODUCER_ID
    """Takes over when the transaction that is ending has ended."""
    last_producer_epoch: int = NO_EPOCH
    """The epoch before the last bump that the producer asked for (KIP-360). It is not in the records."""
    client_version: int = 0
    """The protocol of the last transaction."""

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether no other epoch can be given to a client: the largest is kept for fencing."""
        return is_epoch_exhausted(self.producer_epoch)

    @property
    def commits(self) -> bool:
        """Of a prepared transaction: whether it commits."""
        return self.state is TransactionStatus.PREPARE_COMMIT


def is_epoch_exhausted(epoch: int) -> bool:
    return epoch >= MAX_EPOCH - 1


def _concurrent(transaction: Transaction) -> KafkaError:
    return KafkaError(
        ErrorCode.CONCURRENT_TRANSACTIONS, f"the transaction before is still ending ({transaction.state.wire_name})"
    )


def _fenced(transaction: Transaction, epoch: int) -> KafkaError:
    return KafkaError(ErrorCode.PRODUCER_FENCED, f"epoch {epoch} is not the current {transaction.producer_epoch}")


# InitProducerId


def create(transactional_id: str, producer_id: int, timeout_ms: int, now_ms: int) -> Transaction:
    """A transactional id that was not known."""
    return Transaction(transactional_id, producer_id, 0, timeout_ms, TransactionStatus.EMPTY, now_ms)


def initialize(
    known: Transaction, expected: tuple[int, int] | None, new_producer_id: int, timeout_ms: int, now_ms: int
) -> Transaction:
    """A producer begins, or resumes with the id and epoch it ``expected``; no transaction is open.

    ``new_producer_id`` is for the case that the epochs are used up. KafkaError PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
    """
    if known.state in PREPARED:
        raise _concurrent(known)
    check_expected(known, expected)
    epoch = known.producer_epoch
    renewed = dataclasses.replace(
        known,
        state=TransactionStatus.EMPTY,
        partitions=frozenset(),
        start_ms=-1,
        timeout_ms=timeout_ms,
        updated_ms=now_ms,
        previous_producer_id=known.producer_id,
        next_producer_id=NO_PRODUCER_ID,
    )
    if known.is_epoch_exhausted and (expected is None or expected[1] == epoch):
        last = NO_EPOCH if expected is None else epoch
        return dataclasses.replace(renewed, producer_id=new_producer_id, producer_epoch=0, last_producer_epoch=last)
    if expected is None:
        return dataclasses.replace(renewed, producer_epoch=epoch + 1, last_producer_epoch=NO_EPOCH)
    if expected[1] == epoch:
        return dataclasses.replace(renewed, producer_epoch=epoch + 1, last_producer_epoch=epoch)
    if expected[1] == known.last_producer_epoch:  # the response to an earlier try was lost
        return renewed
    raise _fenced(known, expected[1])


def check_expected(known: Transaction, expected: tuple[int, int] | None) -> None:
    """Whether a producer that resumes is the one that wrote last. KafkaError PRODUCER_FENCED."""
    if expected is None or expected[0] == known.producer_id:
        return
    # The id was replaced because its epochs were used up, and the producer has not seen the response that says so.
    if expected[0] == known.previous_producer_id and is_epoch_exhausted(expected[1]):
        return
    raise _fenced(known, expected[1])


def fence(known: Transaction, server_version: int, now_ms: int) -> Transaction:
    """Abort the open transaction with a new epoch, so that the producer that began it cannot go on."""
    assert known.state is TransactionStatus.ONGOING
    return dataclasses.replace(
        known,
        state=TransactionStatus.PREPARE_ABORT,
        producer_epoch=known.producer_epoch + 1,
        last_producer_epoch=known.producer_epoch if server_version >= TRANSACTIONS_V2 else NO_EPOCH,
        updated_ms=now_ms,
        client_version=server_version,
    )


# AddPartitionsToTxn


def check_producer(known: Transaction | None, producer_id: int, producer_epoch: int) -> Transaction:
    """The transaction a producer may write to. KafkaError by what is wrong with it."""
    if known is None or known.producer_id != producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"producer {producer_id} does not have this id")
    if known.producer_epoch != producer_epoch:
        raise _fenced(known, producer_epoch)
    if known.state in PREPARED:
        raise _concurrent(known)
    return known


def check_adding(known: Transaction | None, producer_id: int, producer_epoch: int) -> Transaction:
    """The transaction a producer may add partitions to: as ``check_producer``, but first CONCURRENT_TRANSACTIONS.

    While a transaction ends no producer is fenced, whatever the epoch: an end that bumps the epoch may be what made it wrong.
    """
    if known is not None and known.state in PREPARED:
        raise _concurrent(known)
    return check_producer(known, producer_id, producer_epoch)


def add_partitions(
    known: Transaction, partitions: Iterable[TopicPartition], client_version: int, now_ms: int
) -> Transaction | None:
    """Partitions join the transaction, which begins with the first; None when they are all part of it already."""
    added = frozenset(partitions)
    if known.state is TransactionStatus.ONGOING:
        if added <= known.partitions:
            return None
        return dataclasses.replace(known, partitions=known.partitions | added, updated_ms=now_ms)
    return dataclasses.replace(
        known,
        state=TransactionStatus.ONGOING,
        partitions=added,
        start_ms=now_ms,
        updated_ms=now_ms,
        client_version=client_version,
    )


# EndTxn


def needs_producer_id(known: Transaction | None, client_version: int) -> bool:
    """Whether the end of the transaction may need a new producer id."""
    return known is not None and client_version >= TRANSACTIONS_V2 and known.is_epoch_exhausted


def end(
    known: Transaction | None, producer: tuple[int, int], commit: bool, client_version: int, new_id: int, now_ms: int
) -> Transaction | None:
    """A producer (id, epoch) commits or aborts; None when that has been done and this asks for it a second time.

    KafkaError INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE. While the markers of
    the transaction before are missing, a V2 producer is told CONCURRENT_TRANSACTIONS before anything else, and a classic one
    once its id and epoch are right (``TransactionCoordinator.endTransaction`` and ``endTransactionWithTV1`` of Kafka 4.3).
    """
    is_v2 = client_version >= TRANSACTIONS_V2
    if is_v2 and known is not None and known.state in PREPARED:
        raise _concurrent(known)
    is_overflow = is_v2 and known is not None and _is_from_used_up_id(known, *producer)
    if known is None or (known.producer_id != producer[0] and not is_overflow):
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"producer {producer[0]} does not have this id")
    is_retry = is_v2 and known.state in _COMPLETE and (is_overflow or known.producer_epoch == producer[1] + 1)
    if not is_retry and known.producer_epoch != producer[1]:
        raise _fenced(known, producer[1])
    if known.state is TransactionStatus.ONGOING:
        return _prepare(known, commit, client_version, new_id, now_ms)
    if known.state in PREPARED:
        raise _concurrent(known)
    if is_retry or not is_v2:
        if known.state is _ENDED_AS[commit]:
            return None
        raise _wrong_state(known, commit)
    if commit:
        raise _wrong_state(known, commit)
    # A V2 producer's first batch may have failed, and it cannot know whether that began the transaction.
    return _prepare(dataclasses.replace(known, start_ms=now_ms), commit, client_version, new_id, now_ms)


def _is_from_used_up_id(known: Transaction, producer_id: int, producer_epoch: int) -> bool:
    """Whether a producer has the last epoch of the id that was in use before this one."""
    return known.previous_producer_id == producer_id and producer_epoch == MAX_EPOCH - 1 and known.producer_epoch == 0


def _wrong_state(known: Transaction, commit: bool) -> KafkaError:
    wanted = "commit" if commit else "abort"
    return KafkaError(ErrorCode.INVALID_TXN_STATE, f"cannot {wanted} in state {known.state.wire_name}")


def _prepare(known: Transaction, commit: bool, client_version: int, new_id: int, now_ms: int) -> Transaction:
    prepared = dataclasses.replace(
        known, state=_PREPARED_AS[commit], updated_ms=now_ms, client_version=client_version, next_producer_id=-1
    )
    if client_version < TRANSACTIONS_V2:
        return prepared
    return dataclasses.replace(
        prepared,
        producer_epoch=known.producer_epoch + 1,
        last_producer_epoch=known.producer_epoch,
        next_producer_id=new_id if known.is_epoch_exhausted else NO_PRODUCER_ID,
    )


def complete(prepared: Transaction, now_ms: int) -> Transaction:
    """All markers are written."""
    assert prepared.state in PREPARED
    completed = dataclasses.replace(
        prepared,
        state=_ENDED_AS[prepared.commits],
        partitions=frozenset(),
        updated_ms=now_ms,
        previous_producer_id=prepared.producer_id,
        next_producer_id=NO_PRODUCER_ID,
    )
    if prepared.next_producer_id == NO_PRODUCER_ID:
        return completed
    return dataclasses.replace(completed, producer_id=prepared.next_producer_id, producer_epoch=0)


def bump_epoch_past(prepared: Transaction, epoch: int) -> Transaction:
    """The transaction after its markers were written with ``epoch``, above all that partitions knew; no producer has it."""
    assert prepared.state in PREPARED
    return dataclasses.replace(prepared, producer_epoch=epoch, last_producer_epoch=NO_EPOCH)


# Time


def is_timed_out(known: Transaction, now_ms: int) -> bool:
    return known.state is TransactionStatus.ONGOING and known.start_ms + known.timeout_ms < now_ms


def is_expired(known: Transaction, now_ms: int, expiration_ms: int) -> bool:
    """Whether the id has not been used for so long that it is forgotten."""
    idle = known.state is TransactionStatus.EMPTY or known.state in _COMPLETE
    return idle and known.updated_ms <= now_ms - expiration_ms
