"""Transactions from InitProducerId to their last marker, on logs in memory."""

from __future__ import annotations

import logging
import struct

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode, KafkaError
from ottla.transaction_coordinator.coordinator import TransactionCoordinator
from ottla.wire.messages.list_transactions import ListTransactionsRequest
from ottla.wire.records import RecordsBuilder

from .conftest import no_flush

PARTITIONS = [("t", 0), ("t", 1), ("u", 0)]
CLASSIC, V2 = 0, 2


def refused(code: ErrorCode):
    return pytest.raises(KafkaError, match=code.name)


async def state_of(coordinator: TransactionCoordinator, transactional_id: str = "id") -> str:
    return (await coordinator.describe(transactional_id, no_flush)).transaction_state


async def init(coordinator: TransactionCoordinator, expected=None, *, timeout_ms: int = 60_000) -> tuple[int, int]:
    return await coordinator.init_producer_id("id", timeout_ms, expected, no_flush)


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


async def test_commit(run, autojump_clock):
    async def test(world):
        coordinator = await world.coordinator()
        producer = await init(coordinator)
        assert producer == (1000, 0)
        assert await state_of(coordinator) == "Empty"
        await coordinator.add_partitions("id", producer, PARTITIONS, CLASSIC, no_flush)
        assert await state_of(coordinator) == "Ongoing"
        assert await coordinator.verify_partitions("id", producer, [*PARTITIONS, ("v", 0)], no_flush) == set(PARTITIONS)
        world.leaders.gate = trio.Event()
        assert await coordinator.end_transaction("id", producer, True, CLASSIC, no_flush) == producer
        await settle()
        assert await state_of(coordinator) == "PrepareCommit", "the answer does not wait for the markers"
        with refused(ErrorCode.CONCURRENT_TRANSACTIONS):
            await coordinator.add_partitions("id", producer, PARTITIONS, CLASSIC, no_flush)
        world.leaders.gate.set()
        await coordinator.wait_ended("id")
        assert await state_of(coordinator) == "CompleteCommit"
        assert sorted(world.leaders.markers) == [(topic, index, 1000, 0, True) for topic, index in PARTITIONS]

    await run(test)


async def test_markers_wait_until_the_decision_is_committed(run, autojump_clock):
    async def test(world):
        coordinator = await world.coordinator()
        producer = await init(coordinator)
        await coordinator.add_partitions("id", producer, PARTITIONS, V2, no_flush)
        world.log.held = True
        async with trio.open_nursery() as nursery:
            nursery.start_soon(coordinator.end_transaction, "id", producer, True, V2, no_flush)
            await settle()
            assert world.leaders.markers == []
            world.log.release()
        await coordinator.wait_ended("id")
        assert {marker[3] for marker in world.leaders.markers} == {1}, "markers of V2 have the next epoch"

    await run(test)


async def test_of_two_leader_epochs_only_the_later_one_ends_a_transaction(run, autojump_clock):
    async def test(world):
        coordinator = await world.coordinator()
        producer = await init(coordinator)
        await coordinator.add_partitions("id", producer, PARTITIONS, CLASSIC, no_flush)
        world.log.held = True
        async with trio.open_nursery() as nursery:

            async def end() -> None:
                with refused(ErrorCode.NOT_COORDINATOR):
                    await coordinator.end_transaction("id", producer, True, CLASSIC, no_flush)

            nursery.start_soon(end)
            await settle()
            coordinator.unload(coordinator.partition_for("id"))
            await coordinator.load(coordinator.partition_for("id"), world.epoch + 2)
            world.log.release()
        await coordinator.wait_ended("id")
        assert await state_of(coordinator) == "CompleteCommit"
        assert world.leaders.coordinator_epochs == {world.epoch + 2}

    await run(test)


async def test_a_coordinator_that_is_elected_again_goes_on(run, autojump_clock):
    """As when another replica has died: its producer would look for a coordinator that it has already."""

    async def test(world):
        coordinator = await world.coordinator()
        producer = await init(coordinator)
        await coordinator.add_partitions("id", producer, PARTITIONS, CLASSIC, no_flush)
        world.log.held = True
        async with trio.open_nursery() as nursery:
            nursery.start_soon(coordinator.end_transaction, "id", producer, True, CLASSIC, no_flush)
            await settle()
            await coordinator.load(coordinator.partition_for("id"), world.epoch + 1)
            await settle()
            world.log.release()
        await coordinator.wait_ended("id")
        assert sorted(world.leaders.markers) == [(topic, index, 1000, 0, True) for topic, index in PARTITIONS]
        assert world.leaders.coordinator_epochs == {world.epoch + 1}

    await run(test)


@pytest.mark.parametrize("request_name", ["AddPartitionsToTxn", "EndTxn", "InitProducerId"])
async def test_a_producer_waits_while_a_replica_that_has_died_is_in_sync(run, autojump_clock, request_name):
    async def test(world):
        coordinator = await world.coordinator()
        producer = await init(coordinator)
        if request_name == "EndTxn":
            await coordinator.add_partitions("id", producer, PARTITIONS, CLASSIC, no_flush)
        world.log.held = True

        async def ask() -> None:
            if request_name == "EndTxn":
                await coordinator.end_transaction("id", producer, True, CLASSIC, no_flush)
            elif request_name == "InitProducerId":
                await init(coordinator)
            else:
                await coordinator.add_partitions("id", producer, PARTITIONS, CLASSIC, no_flush)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.sleep(18)  # the default time-out of a session
            world.log.release()

    await run(test)


async def test_the_next_coordinator_goes_on(run, autojump_clock):
    async def test(world):
        first = await world.coordinator()
        producer = await init(first)
        await first.add_partitions("id", producer, PARTITIONS, CLASSIC, no_flush)
        world.leaders.codes["t", 1] = ErrorCode.NOT_LEADER_OR_FOLLOWER
        await first.end_transaction("id", producer, False, CLASSIC, no_flush)
        await settle()
        assert len(world.leaders.markers) == 2
        first.unload(first.partition_for("id"))
        with refused(ErrorCode.NOT_COORDINATOR):
            await first.describe("id", no_flush)
        world.leaders.codes.clear()
        world.leaders.markers.clear()
        second = await world.coordinator()
        await second.wait_ended("id")
        assert await state_of(second) == "CompleteAbort"
        assert sorted(world.leaders.markers) == [(topic, index, 1000, 0, False) for topic, index in PARTITIONS]
        assert await init(second) == (1000, 1)

    await run(test)


async def test_partitions_that_are_gone_or_away(run, autojump_clock):
    async def test(world):
        coordinator = await world.coordinator()
        producer = await init(coordinator)
        await coordinator.add_partitions("id", producer, PARTITIONS, CLASSIC, no_flush)
        world.leaders.gone.add(("u", 0))
        world.leaders.away.add(("t", 0))
        world.leaders.codes["t", 1] = ErrorCode.NOT_ENOUGH_REPLICAS
        await coordinator.end_transaction("id", producer, True, CLASSIC, no_flush)
        await settle()
        assert await state_of(coordinator) == "PrepareCommit"
        world.leaders.away.clear()
        world.leaders.codes.clear()
        await coordinator.wait_ended("id")
        assert sorted(world.leaders.markers) == [("t", 0, 1000, 0, True), ("t", 1, 1000, 0, True)]

    await run(test)


async def test_a_coordinator_that_is_out_of_date_stops(run, autojump_clock):
    async def test(world):
        coordinator = await world.coordinator()
        producer = await init(coordinator)
        await coordinator.add_partitions("id", producer, PARTITIONS, CLASSIC, no_flush)
        world.leaders.codes["t", 1] = ErrorCode.TRANSACTION_COORDINATOR_FENCED
        await coordinator.end_transaction("id", producer, True, CLASSIC, no_flush)
        await settle()
        world.leaders.codes.clear()
        await trio.sleep(10)
        assert await state_of(coordinator) == "PrepareCommit"

    await run(test)


@pytest.mark.parametrize("known", [1, 30, (1 << 15) - 1])
async def test_partitions_that_know_a_later_epoch_are_outdone(run, autojump_clock, known):
    """The power went, and with it the newest records of the coordinator, but not what partitions know of the producer."""

    async def test(world):
        coordinator = await world.coordinator()
        producer = await init(coordinator)
        await coordinator.add_partitions("id", producer, PARTITIONS, CLASSIC, no_flush)
        world.leaders.epochs["t", 1] = known
        await coordinator.end_transaction("id", producer, True, CLASSIC, no_flush)
        await coordinator.wait_ended("id")
        assert await state_of(coordinator) == "CompleteCommit"
        *decided, (*outdone, epoch, commits) = world.leaders.markers
        assert sorted(decided) == [("t", 0, 1000, 0, True), ("u", 0, 1000, 0, True)]
        assert (outdone, commits) == (["t", 1, 1000], False), "what was begun there later is aborted"
        assert epoch >= known
        with refused(ErrorCode.PRODUCER_FENCED):
            await coordinator.add_partitions("id", producer, PARTITIONS, CLASSIC, no_flush)
        renewed = await init(coordinator)
        assert renewed > (1000, epoch), "a new id where the epochs are used up"
        await coordinator.add_partitions("id", renewed, PARTITIONS, CLASSIC, no_flush)
        world.leaders.epochs.clear()
        await coordinator.end_transaction("id", renewed, True, CLASSIC, no_flush)
        await coordinator.wait_ended("id")

    await run(test)


async def test_a_coordinator_of_the_past_does_not_outdo_its_successor(run, autojump_clock):
    async def test(world):
        coordinator = await world.coordinator()
        producer = await init(coordinator)
        await coordinator.add_partitions("id", producer, PARTITIONS, CLASSIC, no_flush)
        world.leaders.epochs["t", 1] = 7
        world.leaders.gate = trio.Event()
        await coordinator.end_transaction("id", producer, True, CLASSIC, no_flush)
        await settle()
        world.log.held = True
        world.leaders.gate.set()
        await trio.sleep(20)
        assert {marker[3] for marker in world.leaders.markers} == {0}

    await run(test)


async def test_fencing_aborts_what_is_open(run, autojump_clock):
    async def test(world):
        coordinator = await world.coordinator()
        zombie = await init(coordinator)
        await coordinator.add_partitions("id", zombie, PARTITIONS, CLASSIC, no_flush)
        with refused(ErrorCode.CONCURRENT_TRANSACTIONS):
            await init(coordinator)
        await coordinator.wait_ended("id")
        assert {marker[3:] for marker in world.leaders.markers} == {(1, False)}
        assert await init(coordinator) == (1000, 2)
        with refused(ErrorCode.PRODUCER_FENCED):
            await coordinator.end_transaction("id", zombie, True, CLASSIC, no_flush)
        with refused(ErrorCode.PRODUCER_FENCED):
            await init(coordinator, zombie)

    await run(test)


async def test_timeouts(run, autojump_clock):
    async def test(world):
        coordinator = await world.coordinator()
        producer = await init(coordinator, timeout_ms=5_000)
        await coordinator.add_partitions("id", producer, PARTITIONS, CLASSIC, no_flush)
        await trio.sleep(3)
        coordinator.abort_timed_out()
        assert await state_of(coordinator) == "Ongoing"
        await trio.sleep(3)
        coordinator.abort_timed_out()
        await coordinator.wait_ended("id")
        assert await state_of(coordinator) == "CompleteAbort"
        with refused(ErrorCode.PRODUCER_FENCED):
            await coordinator.add_partitions("id", producer, PARTITIONS, CLASSIC, no_flush)
        assert await init(coordinator, producer) == (1000, 1), "it may resume"

    await run(test)


async def test_ids_that_are_not_used_are_forgotten(run, autojump_clock):
    async def test(world):
        coordinator = await world.coordinator()
        await init(coordinator)
        await trio.sleep(50)
        coordinator.remove_expired_transactional_ids()
        assert await state_of(coordinator) == "Empty"
        await trio.sleep(51)
        coordinator.remove_expired_transactional_ids()
        with refused(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
            await coordinator.describe("id", no_flush)
        with refused(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
            await (await world.coordinator()).describe("id", no_flush)
        assert await init(coordinator) == (1001, 0)

    await run(test, transactional_id_expiration_ms=100_000)


async def test_a_log_that_refuses_changes_nothing(run, autojump_clock):
    async def test(world):
        coordinator = await world.coordinator()
        producer = await init(coordinator)
        world.log.error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        with refused(ErrorCode.COORDINATOR_NOT_AVAILABLE):
            await coordinator.add_partitions("id", producer, PARTITIONS, CLASSIC, no_flush)
        assert await state_of(coordinator) == "Empty"
        world.log.error = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        with refused(ErrorCode.NOT_COORDINATOR):
            await init(coordinator)
        assert await init(coordinator) == (1000, 1)

    await run(test)


async def test_two_at_once_under_one_id(run, autojump_clock):
    async def test(world):
        coordinator = await world.coordinator()
        got = []

        async def one() -> None:
            got.append(await init(coordinator))

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(one)
        assert {producer_id for producer_id, _ in got} == {got[0][0]}
        assert sorted(epoch for _, epoch in got) == [0, 1, 2]

    await run(test)


async def test_lists_by_pattern(run, autojump_clock):
    async def test(world):
        coordinator = await world.coordinator()
        for partition in range(50):
            await coordinator.load(partition, 1)
        for name in ("orders-1", "orders-2", "orders-3", "other"):
            await coordinator.init_producer_id(name, 60_000, None, no_flush)
        asked = []

        def is_allowed(name):
            asked.append(name)
            return name != "orders-3"

        request = ListTransactionsRequest(transactional_id_pattern="orders-.")
        listed = (await coordinator.list_transactions(request, is_allowed, no_flush)).transaction_states
        assert sorted(each.transactional_id for each in listed) == ["orders-1", "orders-2"]
        assert sorted(asked) == ["orders-1", "orders-2", "orders-3", "other"]
        with refused(ErrorCode.INVALID_REGULAR_EXPRESSION):
            unread = ListTransactionsRequest(transactional_id_pattern="(")
            await coordinator.list_transactions(unread, is_allowed, no_flush)

    await run(test)


@pytest.mark.parametrize("loses", [True, False], ids=["past", "present"])
async def test_a_refusal_waits_until_what_it_rests_on_is_committed(run, autojump_clock, loses):
    """A coordinator that was replaced without knowing may have ended a transaction that its successor knows to be open."""

    async def test(world):
        coordinator = await world.coordinator()
        producer = await coordinator.init_producer_id("id", 60_000, None, no_flush)
        await coordinator.add_partitions("id", producer, PARTITIONS, V2, no_flush)
        next_one = await coordinator.end_transaction("id", producer, False, V2, no_flush)
        world.log.held = True
        await coordinator.wait_ended("id")
        codes = []

        async def ask() -> None:
            try:
                await coordinator.end_transaction("id", next_one, True, V2, no_flush)
            except KafkaError as error:
                codes.append(error.code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            assert codes == []
            if not loses:
                world.log.release()
        assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE if loses else ErrorCode.INVALID_TXN_STATE]

    await run(test)


@pytest.mark.parametrize("loses", [True, False], ids=["past", "present"])
@pytest.mark.parametrize("asked", ["refused", "ended already", "added already", "not part of it"])
async def test_what_is_final_is_said_by_the_coordinator_of_the_present(run, autojump_clock, asked, loses):
    """All that a coordinator knows is committed, and another one may have gone on from there: then it is not to be believed."""

    async def test(world):
        coordinator = await world.coordinator()
        producer = await init(coordinator)
        await coordinator.add_partitions("id", producer, PARTITIONS[:1], CLASSIC, no_flush)
        if asked == "ended already":
            await coordinator.end_transaction("id", producer, True, CLASSIC, no_flush)
            await coordinator.wait_ended("id")
        world.log.held = True
        answers = []

        async def ask() -> None:
            try:
                match asked:
                    case "refused":
                        await coordinator.end_transaction("id", (producer[0], 7), True, CLASSIC, no_flush)
                    case "ended already":
                        await coordinator.end_transaction("id", producer, True, CLASSIC, no_flush)
                    case "added already":
                        await coordinator.add_partitions("id", producer, PARTITIONS[:1], CLASSIC, no_flush)
                    case _:
                        await coordinator.verify_partitions("id", producer, PARTITIONS, no_flush)
                answers.append(ErrorCode.NONE)
            except KafkaError as error:
                answers.append(error.code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await settle()
            assert answers == []
            if not loses:
                world.log.release()
        right = ErrorCode.PRODUCER_FENCED if asked == "refused" else ErrorCode.NONE
        assert answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE if loses else right]
        world.log.release()
        before = await state_of(coordinator)
        assert await state_of(await world.coordinator()) == before, "the next one has found the same"

    await run(test)


async def test_an_unknown_id_is_refused_by_the_coordinator_of_the_present(run, autojump_clock):
    async def test(world):
        coordinator = await world.coordinator()
        world.log.held = True
        with refused(ErrorCode.COORDINATOR_NOT_AVAILABLE):
            await coordinator.add_partitions("id", (1, 0), PARTITIONS, CLASSIC, no_flush)
        world.log.release()
        with refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING):
            await coordinator.add_partitions("id", (1, 0), PARTITIONS, CLASSIC, no_flush)
        assert await init(coordinator) == (1000, 0)

    await run(test)


async def test_where_no_other_broker_can_be_the_coordinator_a_refusal_writes_nothing(run, autojump_clock):
    async def test(world):
        coordinator = await world.coordinator()
        world.log.replicated = False
        producer = await init(coordinator)
        before = world.log.ends.copy()
        with refused(ErrorCode.PRODUCER_FENCED):
            await coordinator.add_partitions("id", (producer[0], 7), PARTITIONS, CLASSIC, no_flush)
        assert world.log.ends == before

    await run(test)


async def test_records_that_cannot_be_understood_are_one_line_and_the_others_are_served(run, autojump_clock, caplog):
    key = struct.pack(">hh", 0, 2) + b"id"
    no_such_state = struct.pack(">hqhib", 0, 1000, 0, 60_000, 77) + struct.pack(">iqq", -1, 0, 0)
    builder = RecordsBuilder()
    for of_key, value in (
        (struct.pack(">h", 99) + b"a type of the future", None),
        (key, struct.pack(">h", 9) + b"a version of the future"),
        (key, struct.pack(">h", 1) + b"\0"),
        (key, no_such_state),
        (None, b"no key"),
    ):
        builder.append(of_key, value, 1)

    async def test(world):
        coordinator = await world.coordinator()
        await init(coordinator)
        world.log.append(coordinator.partition_for("id"), builder.build())
        caplog.clear()
        coordinator = await world.coordinator()
        assert await state_of(coordinator) == "Empty"
        (line,) = (record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING)
        assert line.startswith("Transaction coordinator: of __transaction_state-")
        assert line.endswith(
            " 5 records could not be understood and were left out; the first is at offset 1: the record type 99 is unknown"
        )

    await run(test)


async def test_batch_with_a_wrong_crc_is_not_read_over(run, autojump_clock, caplog):
    async def test(world):
        coordinator = await world.coordinator()
        producer = await init(coordinator)
        await coordinator.add_partitions("id", producer, PARTITIONS, CLASSIC, no_flush)
        batches = world.log.partitions[coordinator.partition_for("id")]
        batches[1] = batches[1][:-1] + bytes([batches[1][-1] ^ 1])
        caplog.clear()
        coordinator = await world.coordinator()
        with refused(ErrorCode.NOT_COORDINATOR):
            await state_of(coordinator)
        (line,) = (record.getMessage() for record in caplog.records if record.levelno == logging.ERROR)
        assert "the batch of offsets 1 to 1 is damaged" in line
        assert "ottla set-aside" in line

    await run(test)
