"""What is answered between the decision of a transaction and its last marker, which the tests hold back.

The answers are those of Kafka 4.3.1; ``compat_tests/raw/test_transactions_ending.py`` asks both brokers over the wire.
"""

from __future__ import annotations

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode, KafkaError
from ottla.transaction_coordinator.coordinator import TransactionCoordinator

from .conftest import World, no_flush

PARTITIONS = [("t", 0), ("t", 1)]
CLASSIC, V2 = 0, 2
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
FENCED = ErrorCode.PRODUCER_FENCED
UNKNOWN_ID = ErrorCode.INVALID_PRODUCER_ID_MAPPING
FROM_THE_EPOCH_AT_THE_DECISION = (-1, 0, 1, 2)

Producer = tuple[int, int]


async def ending(world: World, *, version: int, commit: bool) -> tuple[TransactionCoordinator, Producer, Producer]:
    """A coordinator whose transaction "id" is decided and has no marker yet; its producer before and after the decision."""
    coordinator = await world.coordinator()
    await coordinator.init_producer_id("id", 60_000, None, no_flush)
    producer = await coordinator.init_producer_id("id", 60_000, None, no_flush)
    await coordinator.add_partitions("id", producer, PARTITIONS, version, no_flush)
    world.leaders.gate = trio.Event()
    return coordinator, producer, await coordinator.end_transaction("id", producer, commit, version, no_flush)


async def code_of(request) -> ErrorCode:
    try:
        await request
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def asked(coordinator: TransactionCoordinator, api: str, producer: Producer):
    """One request."""
    match api.split():
        case ["EndTxn", "V2", decision]:
            return coordinator.end_transaction("id", producer, decision == "commit", V2, no_flush)
        case ["EndTxn", "classic", decision]:
            return coordinator.end_transaction("id", producer, decision == "commit", CLASSIC, no_flush)
        case ["InitProducerId", "resuming"]:
            return coordinator.init_producer_id("id", 60_000, producer, no_flush)
        case ["InitProducerId"]:
            return coordinator.init_producer_id("id", 60_000, None, no_flush)
        case ["AddPartitions", "V2"]:
            return coordinator.add_partitions("id", producer, PARTITIONS, V2, no_flush)
        case ["AddPartitions", "classic"]:
            return coordinator.add_partitions("id", producer, PARTITIONS, CLASSIC, no_flush)
    assert api == "verify"
    return coordinator.verify_partitions("id", producer, PARTITIONS, no_flush)


NEVER_FENCES = [
    *(f"EndTxn V2 {decision}" for decision in ("commit", "abort")),
    "InitProducerId",
    "InitProducerId resuming",
    "AddPartitions V2",
    "AddPartitions classic",
]
CHECKS_THE_PRODUCER_FIRST = [*(f"EndTxn classic {decision}" for decision in ("commit", "abort")), "verify"]


@pytest.mark.parametrize("commit", [True, False], ids=["committing", "aborting"])
@pytest.mark.parametrize("version", [CLASSIC, V2], ids=["classic", "v2"])
@pytest.mark.parametrize("api", NEVER_FENCES)
async def test_every_epoch_is_told_to_wait(run, autojump_clock, api, version, commit):
    async def test(world):
        coordinator, (producer_id, epoch), _ = await ending(world, version=version, commit=commit)
        for difference in FROM_THE_EPOCH_AT_THE_DECISION:
            request = asked(coordinator, api, (producer_id, epoch + difference))
            assert await code_of(request) is CONCURRENT, f"epoch {difference:+}"
        assert await code_of(asked(coordinator, api, (producer_id + 1, epoch))) is CONCURRENT, "the id is not looked at"

    await run(test)


@pytest.mark.parametrize("commit", [True, False], ids=["committing", "aborting"])
@pytest.mark.parametrize("version", [CLASSIC, V2], ids=["classic", "v2"])
@pytest.mark.parametrize("api", CHECKS_THE_PRODUCER_FIRST)
async def test_the_current_epoch_is_told_to_wait_and_others_are_fenced(run, autojump_clock, api, version, commit):
    async def test(world):
        coordinator, (producer_id, epoch), (_, current) = await ending(world, version=version, commit=commit)
        for difference in FROM_THE_EPOCH_AT_THE_DECISION:
            code = await code_of(asked(coordinator, api, (producer_id, epoch + difference)))
            assert code is (CONCURRENT if epoch + difference == current else FENCED), f"epoch {difference:+}"
        assert await code_of(asked(coordinator, api, (producer_id + 1, current))) is UNKNOWN_ID

    await run(test)


@pytest.mark.parametrize("api", ["EndTxn V2 commit", "EndTxn V2 abort", "AddPartitions V2", "InitProducerId resuming"])
async def test_a_fenced_producer_learns_it_when_the_abort_is_through(run, autojump_clock, api):
    async def test(world):
        coordinator = await world.coordinator()
        zombie = await coordinator.init_producer_id("id", 60_000, None, no_flush)
        await coordinator.add_partitions("id", zombie, PARTITIONS, V2, no_flush)
        world.leaders.gate = trio.Event()
        assert await code_of(asked(coordinator, "InitProducerId", zombie)) is CONCURRENT
        assert await code_of(asked(coordinator, api, zombie)) is CONCURRENT
        world.leaders.gate.set()
        await coordinator.wait_ended("id")
        await coordinator.init_producer_id("id", 60_000, None, no_flush)
        assert await code_of(asked(coordinator, api, zombie)) is FENCED

    await run(test)


async def test_the_next_transaction_after_waiting(run, autojump_clock):
    async def test(world):
        coordinator, _, after = await ending(world, version=V2, commit=True)
        assert await code_of(asked(coordinator, "EndTxn V2 abort", after)) is CONCURRENT
        world.leaders.gate.set()
        await coordinator.wait_ended("id")
        _, epoch = await coordinator.end_transaction("id", after, False, V2, no_flush)
        assert epoch == after[1] + 1, "an abort of a transaction that never got a partition"

    await run(test)


async def test_too_few_replicas_for_the_last_record_is_tried_again(run, autojump_clock):
    async def test(world):
        coordinator, producer, _ = await ending(world, version=CLASSIC, commit=True)
        world.log.error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        world.leaders.gate.set()
        await coordinator.wait_ended("id")
        assert world.log.error is None
        assert len(world.leaders.markers) == len(PARTITIONS), "they are not written again"
        assert await code_of(asked(coordinator, "AddPartitions classic", producer)) is ErrorCode.NONE

    await run(test)


async def test_a_coordinator_that_begins_with_too_few_replicas_ends_what_was_decided(run, autojump_clock):
    async def test(world):
        _, producer, _ = await ending(world, version=CLASSIC, commit=True)
        await trio.testing.wait_all_tasks_blocked()
        world.leaders.gate = None  # which lets the next coordinator pass, and not the first
        world.log.wait_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        second = await world.coordinator()
        await second.wait_ended("id")
        assert await code_of(asked(second, "AddPartitions classic", producer)) is ErrorCode.NONE

    await run(test)
