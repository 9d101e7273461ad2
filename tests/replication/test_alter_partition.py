"""Changes of the in-sync replicas on their way to a controller, which the test plays."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode, KafkaError
from ottla.replication.alter_partition import RETRY_SECONDS, AlterPartitionManager
from ottla.replication.controller_channel import fitting
from ottla.replication.isr import CommittedPartitionState
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)
from ottla.wire.schema import ZERO_UUID

from ..helpers.told import apply, registration
from .helpers.replicas import ME, NOW_MS, OTHER, TOPIC_ID, Replicas, batch, replicas

Answer = AlterPartitionResponse | Exception


class Controller:
    """``RequestChannel`` whose answers the test gives; requests and answers go through their bytes."""

    def __init__(self) -> None:
        self._asked, self.requests = trio.open_memory_channel[AlterPartitionRequest](100)
        self._answers, self._given = trio.open_memory_channel[Answer](100)
        self.in_flight = 0
        self.version = 3

    async def send(self, request: AlterPartitionRequest, *, highest: int | None = None) -> Any:
        assert self.in_flight == 0
        version = self.version if highest is None else min(highest, self.version)
        self.in_flight += 1
        decoded = decode(AlterPartitionRequest, version, memoryview(encode_bytes(fitting(request, version), version)))
        self._asked.send_nowait(decoded)
        answer = await self._given.receive()
        self.in_flight -= 1
        if isinstance(answer, Exception):
            raise answer
        return decode(AlterPartitionResponse, version, memoryview(encode_bytes(answer, version)))

    def answer(self, answer: Answer) -> None:
        self._answers.send_nowait(answer)

    async def request(self) -> AlterPartitionRequest:
        with trio.fail_after(60):
            return await self.requests.receive()

    def agree(self, request: AlterPartitionRequest) -> None:
        """Do as the leader asks."""
        self.answer(answer_to(request))


def in_sync(asked: PartitionData) -> list[int]:
    return [state.broker_id for state in asked.new_isr_with_epochs] or asked.new_isr


def answer_to(request: AlterPartitionRequest, code: int = 0) -> AlterPartitionResponse:
    topics = []
    for topic in request.topics:
        answers = [
            ResponsePartitionData(
                partition_index=asked.partition_index,
                error_code=code,
                leader_id=request.broker_id,
                leader_epoch=asked.leader_epoch,
                isr=[] if code else in_sync(asked),
                partition_epoch=0 if code else asked.partition_epoch + 1,
            )
            for asked in topic.partitions
        ]
        topics.append(ResponseTopicData(topic_name=topic.topic_name, topic_id=topic.topic_id, partitions=answers))
    return AlterPartitionResponse(topics=topics)


class World:
    def __init__(self, world: Replicas, controller: Controller) -> None:
        self.replicas = world
        self.controller = controller

    def lead(self, epoch: int = 0, numbers: int = 1, topic_id: bytes = TOPIC_ID) -> None:
        """This broker leads, alone in sync, partitions of a topic with two replicas."""
        for number in range(numbers):
            apply(self.replicas.manager, "t", topic_id, number, registration(ME, epoch, (ME,), (ME, OTHER)))

    def join(self, number: int = 0, broker_epoch: int = -1) -> None:
        """The follower has caught up."""
        partition = self.replicas.manager.partition("t", number)
        assert partition.leader is not None
        end = partition.log.log_end_offset
        partition.fetched_by(partition.leader.followers[OTHER], end, 0, end, broker_epoch, trio.current_time())

    def isr(self, number: int = 0) -> tuple[int, ...]:
        return self.replicas.manager.partition("t", number).isr

    def is_pending(self) -> bool:
        leader = self.replicas.partition.leader
        return leader is not None and not isinstance(leader.isr, CommittedPartitionState)


@asynccontextmanager
async def running(broker_epochs: list[int] | None = None) -> AsyncIterator[World]:
    """``broker_epochs`` are those the broker has, one request after the other."""
    epochs = iter(broker_epochs or [])
    controller = Controller()
    manager = AlterPartitionManager(ME, controller, lambda: next(epochs, 77))
    async with replicas(manager) as world, trio.open_nursery() as nursery:
        nursery.start_soon(manager.run)
        yield World(world, controller)
        nursery.cancel_scope.cancel()


async def until(world: World, isr: tuple[int, ...], number: int = 0) -> None:
    await trio.testing.wait_all_tasks_blocked()
    assert world.isr(number) == isr


async def test_a_change_goes_to_the_controller_and_counts_from_its_answer_on() -> None:
    async with running() as world:
        world.lead(epoch=3)
        world.join()
        request = await world.controller.request()
        (topic,) = request.topics
        (asked,) = topic.partitions
        assert (request.broker_id, request.broker_epoch, topic.topic_id, topic.topic_name) == (ME, 77, TOPIC_ID, "")
        assert (asked.partition_index, asked.leader_epoch, asked.partition_epoch) == (0, 3, 3)
        assert (in_sync(asked), asked.leader_recovery_state) == ([ME, OTHER], 0)
        assert world.isr() == (ME,)
        world.controller.agree(request)
        await until(world, (ME, OTHER))
        assert world.replicas.partition.partition_epoch == 4


async def test_a_replica_joins_as_the_broker_that_has_caught_up() -> None:
    async with running() as world:
        world.lead()
        world.join(broker_epoch=5)
        request = await world.controller.request()
        leader = world.replicas.partition.leader
        assert leader is not None
        world.replicas.partition.fetched_by(
            leader.followers[OTHER], 0, 0, 0, 6, trio.current_time()
        )  # after a restart, before the answer
        for _ in range(2):
            (asked,) = request.topics[0].partitions
            assert [(s.broker_id, s.broker_epoch) for s in asked.new_isr_with_epochs] == [(ME, -1), (OTHER, 5)]
            world.controller.answer(AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
            request = await world.controller.request()


@pytest.mark.parametrize("version", [0, 1])
async def test_an_older_controller_and_a_topic_without_id_go_by_names(version: int) -> None:
    async with running() as world:
        world.controller.version = version
        world.lead(topic_id=ZERO_UUID)
        world.join()
        request = await world.controller.request()
        assert request.topics[0].topic_name == "t"
        world.controller.agree(request)
        await until(world, (ME, OTHER))


async def test_one_request_is_under_way_and_what_comes_meanwhile_goes_with_the_next() -> None:
    async with running() as world:
        world.lead(numbers=4)
        world.join(0)
        first = await world.controller.request()
        for number in (1, 2, 3):
            world.join(number)
        await trio.testing.wait_all_tasks_blocked()
        assert world.controller.in_flight == 1
        world.controller.agree(first)
        second = await world.controller.request()
        assert [asked.partition_index for asked in second.topics[0].partitions] == [1, 2, 3]
        world.controller.agree(second)
        await until(world, (ME, OTHER), 3)


@pytest.mark.parametrize(
    "failure",
    [
        KafkaError(ErrorCode.UNSUPPORTED_VERSION),
        AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH),
        AlterPartitionResponse(),  # which forgets the partition
    ],
)
async def test_it_is_repeated_until_it_is_answered(failure: Answer, autojump_clock: trio.testing.MockClock) -> None:
    async with running(broker_epochs=[5, 6]) as world:
        world.lead()
        world.join()
        assert (await world.controller.request()).broker_epoch == 5
        before = trio.current_time()
        world.controller.answer(failure)
        again = await world.controller.request()
        assert again.broker_epoch == 6
        assert trio.current_time() - before == pytest.approx(RETRY_SECONDS)
        world.controller.agree(again)
        await until(world, (ME, OTHER))


@pytest.mark.parametrize("code", [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA])
async def test_what_is_refused_is_over(code: ErrorCode, autojump_clock: trio.testing.MockClock) -> None:
    async with running() as world:
        world.lead()
        world.join()
        world.controller.answer(answer_to(await world.controller.request(), code))
        await until(world, (ME,))
        assert not world.is_pending()
        await trio.sleep(1)
        world.join()  # a new change
        world.controller.agree(await world.controller.request())
        await until(world, (ME, OTHER))


async def test_answers_are_logged_once_a_second_with_counts(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "ottla")
    async with running() as world:
        world.lead(numbers=6)
        for number in range(5):
            world.join(number)
        world.controller.agree(await world.controller.request())
        await trio.sleep(0.5)
        world.join(5)
        world.controller.answer(answer_to(await world.controller.request(), ErrorCode.INELIGIBLE_REPLICA))
        await trio.sleep(1.5)
        (line,) = caplog.messages
        assert line.split("; ") == [
            "broker 2 joined the in-sync replicas of 5 partitions (t-0, t-1, t-2, …)",
            "broker 2 may not join (INELIGIBLE_REPLICA) the in-sync replicas of 1 partition (t-5)",
        ]
        world.join(5)
        world.controller.answer(answer_to(await world.controller.request()))
        await until(world, (ME, OTHER), 5)
    assert caplog.messages[1] == "broker 2 joined the in-sync replicas of 1 partition (t-5)", "at the end"


async def test_a_follower_that_is_refused_is_asked_for_less_and_less_often(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Its broker is about to stop, and takes an hour for it; it fetches twice a second."""
    async with running() as world:
        world.lead()
        asked = 0
        for _ in range(7200):
            world.join(broker_epoch=5)
            await trio.testing.wait_all_tasks_blocked()
            if world.is_pending():
                asked += 1
                world.controller.answer(answer_to(await world.controller.request(), ErrorCode.INELIGIBLE_REPLICA))
                await until(world, (ME,))
            await trio.sleep(0.5)
        assert 120 <= asked <= 130, "every half a minute at last"
        world.join(broker_epoch=6)  # it was restarted
        world.controller.agree(await world.controller.request())
        await until(world, (ME, OTHER))


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    ],
)
async def test_after_an_answer_that_is_out_of_date_the_controller_has_the_word(
    code: ErrorCode, autojump_clock: trio.testing.MockClock
) -> None:
    async with running() as world:
        world.lead()
        world.join()
        world.controller.answer(answer_to(await world.controller.request(), code))
        await trio.sleep(60)
        world.join()
        await trio.testing.wait_all_tasks_blocked()
        assert (world.is_pending(), world.controller.in_flight) == (True, 0)
        world.lead(epoch=1)
        assert not world.is_pending()
        world.join()
        world.controller.agree(await world.controller.request())
        await until(world, (ME, OTHER))


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_SERVER_ERROR, 9999], ids=["known", "of a newer controller"])
async def test_any_other_error_is_tried_again(code: int, autojump_clock: trio.testing.MockClock) -> None:
    async with running() as world:
        world.lead()
        world.join()
        world.controller.answer(answer_to(await world.controller.request(), code))
        world.controller.agree(await world.controller.request())
        await until(world, (ME, OTHER))


async def test_a_change_that_is_void_is_neither_sent_again_nor_answered(autojump_clock: trio.testing.MockClock) -> None:
    async with running() as world:
        world.lead()
        world.join()
        request = await world.controller.request()
        world.lead(epoch=1)
        world.controller.agree(request)  # it was done under the leader epoch before
        await until(world, (ME,))
        world.join()
        await world.controller.request()
        world.lead(epoch=2)
        world.controller.answer(KafkaError(ErrorCode.UNSUPPORTED_VERSION))
        await trio.sleep(60)
        assert world.controller.in_flight == 0


async def test_a_new_change_while_the_one_before_is_under_way_waits_for_its_answer() -> None:
    async with running() as world:
        world.lead()
        world.join()
        request = await world.controller.request()
        world.lead(epoch=1)
        world.join()
        await trio.testing.wait_all_tasks_blocked()
        assert world.controller.in_flight == 1
        world.controller.agree(request)
        second = await world.controller.request()
        assert second.topics[0].partitions[0].leader_epoch == 1
        world.controller.agree(second)
        await until(world, (ME, OTHER))


async def test_a_follower_that_lags_is_reported(autojump_clock: trio.testing.MockClock) -> None:
    async with running() as world, trio.open_nursery() as nursery:
        nursery.start_soon(world.replicas.manager.run)
        world.lead()
        world.join()
        world.controller.agree(await world.controller.request())
        await until(world, (ME, OTHER))
        world.replicas.partition.append(batch(), NOW_MS)
        shrink = await world.controller.request()
        assert in_sync(shrink.topics[0].partitions[0]) == [ME]
        assert world.replicas.partition.log.high_watermark == 0
        world.controller.agree(shrink)
        await until(world, (ME,))
        assert world.replicas.partition.log.high_watermark == 1
        nursery.cancel_scope.cancel()
