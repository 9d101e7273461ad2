"""Members of a consumer group (KIP-848) by the hundred, on a few connections of one process.

A member acts as Apache Kafka's Java client does (``AbstractMembershipManager``, ``ConsumerHeartbeatRequestManager``): it joins
with all that it has to say, and says afterwards only what has changed. It takes over every assignment at once, and the next
heartbeat, which has its partitions, follows without delay. Otherwise it sends a heartbeat at the interval that the broker gives.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import secrets
import struct
import time
from collections import deque
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from typing import Any

import trio

from ottla.base.errors import ErrorCode
from ottla.wire.api_keys import ApiKey
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.headers import decode_response_header, encode_request_header
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.registry import response_class
from ottla.wire.schema import Message

_CLIENT_ID = "bench"
_HEARTBEAT, _FIND_COORDINATOR, _LIST_GROUPS = 1, 4, 4
_JOINS, _LEAVES = 0, -1
_REBALANCE_TIMEOUT_MS = 300_000
_NOT_YET = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
_AGAIN_S = 0.1
_POLL_S = 0.01
_LIMIT_S = 180.0
_READ_BYTES = 1 << 20
_ERROR_AT = 13
"""Of the error code in the frame of a heartbeat's response: after size, correlation id, tags and throttle time."""


class Link:
    """A connection on which many members send; responses come in the order of the requests. ``read`` in a task of its own."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._sending = trio.Lock()
        self._correlation_ids = itertools.count(1)
        self._expected: deque[tuple[int, trio.Event, list[bytes]]] = deque()

    async def call(self, request: Message, version: int) -> Any:
        """Send and receive."""
        key = ApiKey(type(request).api_key)
        body = encode_bytes(request, version)
        came, frames = trio.Event(), list[bytes]()
        async with self._sending:
            correlation_id = next(self._correlation_ids)
            message = encode_request_header(key, version, correlation_id, _CLIENT_ID) + body
            self._expected.append((correlation_id, came, frames))
            await self._stream.send_all(struct.pack(">i", len(message)) + message)
        await came.wait()
        got, start = decode_response_header(frames[0], key, version)
        assert got == correlation_id, f"response {got} came where {correlation_id} was due"
        return decode(response_class(key), version, memoryview(frames[0])[start:])

    async def read(self) -> None:
        """Hand responses out, until the task is cancelled. EOFError where the broker closes the connection."""
        async for frame in _frames(self._stream):
            _, came, frames = self._expected.popleft()
            frames.append(frame[4:])
            came.set()


async def _frames(stream: trio.SocketStream) -> AsyncIterator[bytes]:
    """Whole frames, each with its size in front."""
    buffer = bytearray()
    while True:
        if not (data := await stream.receive_some(_READ_BYTES)):
            raise EOFError("the broker has closed the connection")
        buffer += data
        start = 0
        while len(buffer) - start >= 4:
            end = start + 4 + int.from_bytes(buffer[start : start + 4])
            if len(buffer) < end:
                break
            yield bytes(buffer[start:end])
            start = end
        del buffer[:start]


class Member:
    """One member. ``live`` in a task of its own."""

    def __init__(self, group_id: str, topics: Sequence[str], link: Link) -> None:
        self.member_id = secrets.token_urlsafe(16)
        self.epoch = _JOINS
        self.owned: dict[bytes, tuple[int, ...]] = {}
        self.has_joined = trio.Event()
        """Set with the first response."""
        self._group_id, self._topics, self._link = group_id, topics, link
        self._leaves = trio.Event()
        self.interval_s = 0.0
        self._is_early = False

    def send_one_early(self) -> None:
        """Wait with one heartbeat for a random part of the interval, so that members which joined at once go apart."""
        self._is_early = True

    def leave(self) -> None:
        """Leave as soon as there is no request under way."""
        self._leaves.set()

    async def live(self) -> None:
        """Join, stay, and leave when told to. RuntimeError where the broker refuses it."""
        acknowledges = False
        while not self._leaves.is_set():
            began = trio.current_time()
            response = await self._heartbeat(acknowledges=acknowledges)
            if response.error_code in _NOT_YET:
                await trio.sleep(_AGAIN_S)
                continue
            self._check(response.error_code, response.error_message)
            self.epoch, self.interval_s = response.member_epoch, response.heartbeat_interval_ms / 1000
            self.has_joined.set()
            acknowledges = self._take_over(response.assignment)
            if not acknowledges:
                await self._wait_until(began + self.interval_s)
        self.epoch, self.owned = _LEAVES, {}
        response = await self._heartbeat(acknowledges=False)
        self._check(response.error_code, response.error_message)

    async def _wait_until(self, due: float) -> None:
        """Until then, or until the member is to leave."""
        if self._is_early:
            self._is_early = False
            due -= random.random() * self.interval_s
        with trio.move_on_at(due):
            await self._leaves.wait()

    async def _heartbeat(self, *, acknowledges: bool) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id, member_id=self.member_id, member_epoch=self.epoch
        )
        if self.epoch == _JOINS:
            request.rebalance_timeout_ms = _REBALANCE_TIMEOUT_MS
            request.subscribed_topic_names = list(self._topics)
            request.topic_partitions = []
        elif acknowledges:
            request.topic_partitions = [
                TopicPartitions(topic_id=topic_id, partitions=list(numbers)) for topic_id, numbers in self.owned.items()
            ]
        return await self._link.call(request, _HEARTBEAT)

    def _take_over(self, assignment: Any) -> bool:
        """Whether the member has another assignment now, and has to say so."""
        if assignment is None:
            return False
        owned = {each.topic_id: tuple(each.partitions) for each in assignment.topic_partitions}
        if owned == self.owned:
            return False
        self.owned = owned
        return True

    def _check(self, error_code: int, message: str | None) -> None:
        if error_code != ErrorCode.NONE:
            raise RuntimeError(f"member {self.member_id}: {ErrorCode(error_code).name} {message}")

    def idle_frame(self) -> bytes:
        """A whole frame: a heartbeat with nothing new."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id, member_id=self.member_id, member_epoch=self.epoch
        )
        header = encode_request_header(ApiKey.CONSUMER_GROUP_HEARTBEAT, _HEARTBEAT, 0, _CLIENT_ID)
        message = header + encode_bytes(request, _HEARTBEAT)
        return struct.pack(">i", len(message)) + message


class Members:
    """The members of one group, in the order in which they have joined."""

    def __init__(self, group_id: str, port: int, links: Sequence[Link], nursery: trio.Nursery) -> None:
        self.group_id = group_id
        self.present: list[Member] = []
        self._port, self._nursery = port, nursery
        self._links = itertools.cycle(links)
        self._asking = next(self._links)

    def join(self, topics: Sequence[str]) -> Member:
        """A new member, which begins to join."""
        member = Member(self.group_id, topics, next(self._links))
        self.present.append(member)
        self._nursery.start_soon(member.live)
        return member

    def leave(self, member: Member) -> None:
        """A member leaves."""
        self.present.remove(member)
        member.leave()

    async def go_apart(self) -> None:
        """Members that have joined at once send their heartbeats at different times from now on, as others do."""
        for member in self.present:
            member.send_one_early()
        await trio.sleep(2 * max(member.interval_s for member in self.present))

    async def settled(self, partitions: int) -> None:
        """Return when the broker calls the group stable, and its members have all so many partitions.

        RuntimeError where it takes too long, or where two members have the same partition.
        """
        try:
            with trio.fail_after(_LIMIT_S):
                while not (self._has_all(partitions) and await self.state() == "Stable" and self._has_all(partitions)):
                    await trio.sleep(_POLL_S)
        except trio.TooSlowError:
            owned = sum(1 for _ in self._owned())
            raise RuntimeError(f"{owned} of {partitions} partitions after {_LIMIT_S} s: {await self.state()}") from None
        if len(set(self._owned())) != partitions:
            raise RuntimeError(f"not every one of {partitions} partitions has one owner")

    def _has_all(self, partitions: int) -> bool:
        return sum(len(numbers) for member in self.present for numbers in member.owned.values()) == partitions

    def _owned(self) -> Iterator[tuple[bytes, int]]:
        for member in self.present:
            for topic_id, numbers in member.owned.items():
                yield from ((topic_id, number) for number in numbers)

    async def state(self) -> str:
        """As ListGroups tells it; "" where there is no such group."""
        response = await self._asking.call(ListGroupsRequest(), _LIST_GROUPS)
        return next((each.group_state for each in response.groups if each.group_id == self.group_id), "")

    async def send_idle_heartbeats(self, seconds: float, connections: int, in_flight: int) -> float:
        """Send heartbeats with nothing new, on connections of their own with so many requests in flight; how many a second."""
        streams = [await trio.open_tcp_stream("127.0.0.1", self._port) for _ in range(connections)]
        answered = [0] * connections
        began = time.monotonic()
        with trio.move_on_after(seconds):
            async with trio.open_nursery() as nursery:
                for number, stream in enumerate(streams):
                    frames = [member.idle_frame() for member in self.present[number::connections]]
                    nursery.start_soon(_send_over_and_over, stream, frames, in_flight, answered, number)
        rate = sum(answered) / (time.monotonic() - began)
        for stream in streams:
            await trio.aclose_forcefully(stream)
        return rate


async def _send_over_and_over(
    stream: trio.SocketStream, frames: Sequence[bytes], in_flight: int, answered: list[int], number: int
) -> None:
    turns = itertools.cycle(frames)
    await stream.send_all(b"".join(itertools.islice(turns, in_flight)))
    async for frame in _frames(stream):
        (error_code,) = struct.unpack_from(">h", frame, _ERROR_AT)
        if error_code != ErrorCode.NONE:
            raise RuntimeError(f"a heartbeat returned {ErrorCode(error_code).name}")
        answered[number] += 1
        await stream.send_all(next(turns))


@contextlib.asynccontextmanager
async def open_members(group_id: str, port: int, connections: int) -> AsyncIterator[Members]:
    """A group without members, whose coordinator is there."""
    async with trio.open_nursery() as nursery:
        links = [Link(await trio.open_tcp_stream("127.0.0.1", port)) for _ in range(connections)]
        for link in links:
            nursery.start_soon(link.read)
        await _coordinator_is_there(links[0], group_id)
        yield Members(group_id, port, links, nursery)
        nursery.cancel_scope.cancel()


async def _coordinator_is_there(link: Link, group_id: str) -> None:
    """The first request makes ``__consumer_offsets``."""
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group_id])
    with trio.fail_after(_LIMIT_S):
        while (await link.call(request, _FIND_COORDINATOR)).coordinators[0].error_code != ErrorCode.NONE:
            await trio.sleep(_AGAIN_S)


async def all_joined(members: Collection[Member]) -> None:
    """Return when each has had a response."""
    for member in members:
        await member.has_joined.wait()
