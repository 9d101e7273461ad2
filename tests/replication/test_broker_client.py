"""Requests to another broker: answers in order, and every way in which a peer or a caller can fail.

The peer is played by the test; at the end it is a whole broker.
"""

from __future__ import annotations

import random
import struct
import time
from contextlib import suppress
from pathlib import Path

import pytest
import trio
import trio.testing

from ottla.base.addresses import split_host_port
from ottla.base.config import Config
from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.memory_network import MemoryConnection, MemoryNetwork
from ottla.base.network import WOULD_BLOCK, Connection
from ottla.base.seams import TrioWorkers
from ottla.base.tcp import TcpNetwork
from ottla.broker.server import BrokerServer
from ottla.compat_tests.raw.requests import fetch_request
from ottla.replication.broker_client import (
    BrokerClient,
    MalformedResponseError,
    PeerUnavailableError,
    SecuredConnection,
)
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.alter_partition import AlterPartitionRequest
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch
from ottla.wire.schema import Message

from ..helpers import memory_cluster
from ..helpers.memory_broker import ADDRESS, HOST, PORT, running, serving
from .helpers.scripted_peer import (
    TIMEOUT,
    VERSION,
    Peer,
    Sent,
    World,
    answer_frame,
    answer_to,
    heartbeat,
    opened,
    send_all,
)


async def test_requests_in_flight_are_answered_each_with_its_own() -> None:
    async with opened() as world, trio.open_nursery() as nursery:
        sent = await send_all(nursery, world.client, 5)
        peer = await world.accept()
        requests = [await peer.request() for _ in sent]
        assert [request.generation_id for _, request in requests] == [0, 1, 2, 3, 4]
        assert len({header.correlation_id for header, _ in requests}) == 5
        assert {header.client_id for header, _ in requests} == {"broker-1"}
        answers = b"".join(answer_frame(header, answer_to(number)) for number, (header, _) in enumerate(requests))
        await peer.connection.send([answers])
        for one in sent:
            await one.is_answered()


async def test_a_response_may_come_in_any_pieces() -> None:
    async with opened() as world, trio.open_nursery() as nursery:
        sent = await send_all(nursery, world.client, 2)
        peer = await world.accept()
        answers = b"".join([answer_frame((await peer.request())[0], answer_to(number)) for number in range(2)])
        for byte in answers:
            await trio.testing.wait_all_tasks_blocked()
            await peer.connection.send([bytes([byte])])
        for one in sent:
            await one.is_answered()


async def test_more_than_may_be_in_flight_wait_for_their_turn() -> None:
    async with opened(max_in_flight=2) as world, trio.open_nursery() as nursery:
        sent = await send_all(nursery, world.client, 3)
        peer = await world.accept()
        headers = [(await peer.request())[0] for _ in range(2)]
        assert not peer.received
        assert peer.connection.receive_into(memoryview(bytearray(1))) == WOULD_BLOCK
        await peer.answer(headers[0], answer_to(0))
        header, third = await peer.request()
        assert third.generation_id == 2
        await peer.answer(headers[1], answer_to(1))
        await peer.answer(header, answer_to(2))
        for one in sent:
            await one.is_answered()


@pytest.mark.parametrize(
    ("request_", "version", "response"),
    [
        (ControlledShutdownRequest(broker_id=3), 0, ControlledShutdownResponse(error_code=77)),  # without a client id
        (heartbeat(1), 3, answer_to(1)),
        (heartbeat(1), 4, answer_to(1)),  # flexible
        (ApiVersionsRequest(client_software_name="x"), 3, ApiVersionsResponse(throttle_time_ms=1)),  # half flexible
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Message) else None,
)
async def test_headers_are_those_of_the_version(request_: Message, version: int, response: Message) -> None:
    async with opened() as world, trio.open_nursery() as nursery:

        async def play_peer() -> None:
            header, received = await (peer := await world.accept()).request()
            assert (received, header.api_version) == (request_, version)
            await peer.answer(header, response)

        nursery.start_soon(play_peer)
        assert await world.client.send(request_, version) == response


async def test_records_stay_where_they_were_received() -> None:
    batch = bytes(build_batch([Record(0, 1, None, b"v" * 200_000, [])]))
    answered = PartitionData(partition_index=0, records=batch)
    async with opened() as world, trio.open_nursery() as nursery:

        async def play_peer() -> None:
            header, _ = await (peer := await world.accept()).request()
            await peer.answer(header, FetchResponse(responses=[FetchableTopicResponse(partitions=[answered])]))
            await peer.echo()

        nursery.start_soon(play_peer)
        response = await world.client.send(FetchRequest(), 17)
        await world.client.send(heartbeat(1), VERSION)
    records = response.responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    assert isinstance(records.obj, bytearray)
    assert len(batch) < len(records.obj) < len(batch) + 100  # the frame it came in
    assert records == batch


@pytest.mark.parametrize("seed", range(4))
async def test_responses_of_all_sizes_are_whole_and_stay_so(seed: int) -> None:
    """A buffer is as large as the response before suggests: for what comes next it is too small, too large, or right."""
    randomness = random.Random(seed)
    sizes = [10, 300_000, 5, 70_000, 70_000, 512, 40_000, 1_000_000, 3]
    randomness.shuffle(sizes)
    records = [randomness.randbytes(size) for size in sizes]
    responses: dict[int, FetchResponse] = {}
    async with opened(MemoryNetwork(1 << 22)) as world:

        async def ask(number: int) -> None:
            responses[number] = await world.client.send(FetchRequest(), 17)

        async def play_peer(peer: Peer, first: int, count: int) -> None:
            answers = b""
            for number in range(first, first + count):
                header, _ = await peer.request()
                answered = [PartitionData(partition_index=0, records=records[number])]
                topics = [FetchableTopicResponse(partitions=answered)]
                answers += answer_frame(header, FetchResponse(responses=topics))
            while answers:
                size = randomness.choice([1, 3, 100, 60_000, 500_000])
                await peer.connection.send([answers[:size]])
                answers = answers[size:]
                await trio.testing.wait_all_tasks_blocked()

        peer: Peer | None = None
        for first in range(0, len(records), 3):
            async with trio.open_nursery() as nursery:
                for number in range(first, first + 3):
                    nursery.start_soon(ask, number)
                    await trio.testing.wait_all_tasks_blocked()
                peer = peer or await world.accept()
                await play_peer(peer, first, 3)
    assert [bytes(responses[number].responses[0].partitions[0].records or b"") for number in range(9)] == records


# --- a peer that fails ------------------------------------------------------------------------------------------------


async def test_a_request_without_an_answer_in_time_ends_the_connection(autojump_clock: trio.testing.MockClock) -> None:
    async with opened() as world:
        async with trio.open_nursery() as nursery:
            first = Sent(nursery, world.client, 0)
            peer = await world.accept()
            await trio.sleep(TIMEOUT / 2)
            second = Sent(nursery, world.client, 1)
            await first.fails(PeerUnavailableError, "test:9092: no response to HEARTBEAT within 30 s")
            await second.fails(PeerUnavailableError, "no response to HEARTBEAT within 30 s")
            assert trio.current_time() == TIMEOUT
            assert await peer.has_ended()
        await world.is_answered()


async def test_connecting_is_a_part_of_the_time(autojump_clock: trio.testing.MockClock) -> None:
    network = MemoryNetwork()
    world = World(network, await network.listen(HOST, PORT, 0))  # no connection is accepted
    async with trio.open_nursery() as nursery:
        for number in range(3):
            await Sent(nursery, world.client, number).fails(
                PeerUnavailableError, "no response to HEARTBEAT within 30 s"
            )
    assert trio.current_time() == 3 * TIMEOUT
    await world.is_answered()


async def test_where_nobody_listens_the_peer_is_unavailable_until_it_is_there() -> None:
    async with opened() as world, trio.open_nursery() as nursery:
        world.listener.close()
        await Sent(nursery, world.client, 0).fails(PeerUnavailableError, "test:9092: connection refused")
        world.listener = await world.network.listen(HOST, PORT, 10)
        await world.is_answered()


@pytest.mark.parametrize("kept", [0, 2, 4, 9, -1])
@pytest.mark.parametrize("is_cut", [False, True])
async def test_a_peer_that_goes_in_the_middle_of_an_answer(kept: int, is_cut: bool) -> None:
    async with opened() as world, trio.open_nursery() as nursery:
        sent = await send_all(nursery, world.client, 2)
        peer = await world.accept()
        frame = answer_frame((await peer.request())[0], answer_to(0))
        await peer.connection.send([frame[:kept]])
        await trio.testing.wait_all_tasks_blocked()
        if is_cut:
            peer.connection.cut()
        else:
            peer.connection.close()
        for one in sent:
            await one.fails(PeerUnavailableError, "connection reset" if is_cut else "the peer closed the connection")
        await world.is_answered()


@pytest.mark.parametrize(
    ("garbage", "words"),
    [
        (struct.pack(">i", 1001) + bytes(1001), "a frame of 1001 bytes, where 1000 are the most"),
        (b"HTTP/1.1 400 Bad Request", "a frame of 1213486160 bytes"),
        (struct.pack(">i", -1), "a frame of -1 bytes"),
        (struct.pack(">i", 0), "response header cut short"),
        (struct.pack(">ii", 4, 1), "response header cut short"),
        (struct.pack(">iib", 5, 77, 0), "answer 77 came where 1 was due"),
        (struct.pack(">iibi", 9, 1, 0, 5), "HeartbeatResponse v4 ends too early"),
        (struct.pack(">iibihbi", 16, 1, 0, 0, 0, 0, 0), "4 bytes are left over"),
    ],
)
async def test_an_answer_that_is_not_the_protocol_ends_the_connection(garbage: bytes, words: str) -> None:
    async with opened(max_response=1000) as world, trio.open_nursery() as nursery:
        first, second = await send_all(nursery, world.client, 2)
        peer = await world.accept()
        await peer.connection.send([garbage])
        await first.fails(MalformedResponseError, words)
        await second.fails(PeerUnavailableError, words)
        assert await peer.has_ended()
        await world.is_answered()


@pytest.mark.parametrize("last_words", [b"", b"unasked"])
async def test_a_connection_that_the_peer_closed_while_it_was_idle_is_not_used_again(last_words: bytes) -> None:
    """As after connections.max.idle.ms: the next request meets with no error."""
    async with opened() as world, trio.open_nursery() as nursery:
        sent = Sent(nursery, world.client, 0)
        peer = await world.accept()
        await peer.echo()
        await sent.is_answered()
        await peer.connection.send([last_words])
        peer.connection.close()
        await world.is_answered()


# --- a caller that goes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cancelled", [[0], [1], [2], [0, 1], [1, 2], [0, 2]])
@pytest.mark.parametrize("arrived", [0, 3, 9])
async def test_the_answer_of_a_cancelled_request_is_read_past(cancelled: list[int], arrived: int) -> None:
    async with opened() as world, trio.open_nursery() as nursery:
        sent = await send_all(nursery, world.client, 3)
        peer = await world.accept()
        headers = [(await peer.request())[0] for _ in sent]
        answers = b"".join(answer_frame(header, answer_to(number)) for number, header in enumerate(headers))
        await peer.connection.send([answers[:arrived]])
        for number in cancelled:
            await trio.testing.wait_all_tasks_blocked()
            sent[number].scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        later = Sent(nursery, world.client, 3)
        await trio.testing.wait_all_tasks_blocked()
        await peer.connection.send([answers[arrived:]])
        await peer.echo()
        for one in [*sent, later]:
            if one.number not in cancelled:
                await one.is_answered()


async def test_with_nobody_left_to_read_the_connection_is_closed() -> None:
    async with opened() as world, trio.open_nursery() as nursery:
        sent = await send_all(nursery, world.client, 2)
        peer = await world.accept()
        header, _ = await peer.request()
        sent[1].scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        await peer.answer(header, answer_to(0))
        await sent[0].is_answered()
        assert await peer.has_ended()
        await world.is_answered()


async def test_a_request_that_is_cancelled_half_written_ends_the_connection() -> None:
    async with opened(MemoryNetwork(limit=40)) as world, trio.open_nursery() as nursery:
        first, second, third = await send_all(nursery, world.client, 3)  # the second one has no room
        second.scope.cancel()
        await first.fails(PeerUnavailableError, "a request was cancelled before it was written to its end")
        assert await (await world.accept()).has_ended()
        await (await world.accept()).echo()
        await third.is_answered()


async def test_a_request_that_is_not_written_in_time_ends_the_connection(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with opened(MemoryNetwork(limit=40)) as world, trio.open_nursery() as nursery:
        for one in await send_all(nursery, world.client, 3):
            await one.fails(PeerUnavailableError, "no response to HEARTBEAT within 30 s")


@pytest.mark.parametrize("seed", range(5))
async def test_whoever_goes_the_others_get_their_own_answers(seed: int) -> None:
    rng = random.Random(seed)
    async with opened(max_in_flight=4) as world, trio.open_nursery() as nursery:

        async def play_peer() -> None:
            while True:
                connection = await world.listener.accept()
                nursery.start_soon(echo_always, Peer(connection))

        async def echo_always(peer: Peer) -> None:
            with suppress(AssertionError, OSError):  # the client has closed this one
                while True:
                    header, request = await peer.request()
                    frame = answer_frame(header, answer_to(request.generation_id))
                    cut = rng.randrange(len(frame))
                    for piece in (frame[:cut], frame[cut:]):
                        await trio.testing.wait_all_tasks_blocked(rng.choice([0, 0.0001]))
                        await peer.connection.send([piece])

        nursery.start_soon(play_peer)
        sent: list[Sent] = []
        for number in range(100):
            sent.append(Sent(nursery, world.client, number))
            if rng.random() < 0.3:
                sent[rng.randrange(max(0, number - 5), number + 1)].scope.cancel()
            if rng.random() < 0.5:
                await trio.testing.wait_all_tasks_blocked()
        await sent[-1].is_over.wait()
        for one in sent:
            await one.is_over.wait()
            assert one.scope.cancel_called or one.response == answer_to(one.number), one.error
        nursery.cancel_scope.cancel()


async def test_what_a_version_cannot_carry_is_not_sent() -> None:
    async with opened() as world:
        with pytest.raises(ValueError, match="versions 0-4, not 5"):
            await world.client.send(heartbeat(0), 5)


# --- closing ----------------------------------------------------------------------------------------------------------


async def test_closing_ends_what_is_in_flight_and_all_after_it() -> None:
    async with opened() as world, trio.open_nursery() as nursery:
        sent = await send_all(nursery, world.client, 2)
        peer = await world.accept()
        world.client.close()
        world.client.close()
        for one in [*sent, Sent(nursery, world.client, 2)]:
            await one.fails(PeerUnavailableError, "test:9092: the client was closed")
        assert await peer.has_ended()


@pytest.mark.parametrize("_", range(20))  # of the two tasks that go on either may be the first
async def test_closing_between_two_answers_that_came_together(_: int) -> None:
    async with opened() as world, trio.open_nursery() as nursery:
        sent = await send_all(nursery, world.client, 2)
        peer = await world.accept()
        frames = [answer_frame((await peer.request())[0], answer_to(number)) for number in range(2)]
        await peer.connection.send([b"".join(frames)])
        await sent[0].is_answered()
        world.client.close()
        await sent[1].fails(PeerUnavailableError, "test:9092: the client was closed")


async def test_closing_while_it_connects() -> None:
    network = MemoryNetwork()
    world = World(network, await network.listen(HOST, PORT, 0))
    async with trio.open_nursery() as nursery:
        sent = Sent(nursery, world.client, 0)
        await trio.testing.wait_all_tasks_blocked()
        world.client.close()
        peer = await world.accept()
        await sent.fails(PeerUnavailableError, "test:9092: the client was closed")
        assert await peer.has_ended()


# --- versions ---------------------------------------------------------------------------------------------------------


async def play_versions(world: World, response: ApiVersionsResponse) -> Peer:
    """Take a connection, on which the first request is ApiVersions."""
    peer = await world.accept()
    header, request = await peer.request()
    assert isinstance(request, ApiVersionsRequest)
    await peer.answer(header, response)
    return peer


async def test_the_highest_common_version_is_asked_for_once_per_connection() -> None:
    ranges = ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=ApiKey.HEARTBEAT, min_version=1, max_version=99),
            ApiVersion(api_key=ApiKey.ALTER_PARTITION, min_version=0, max_version=2),
            ApiVersion(api_key=ApiKey.METADATA, min_version=50, max_version=51),
        ]
    )
    older = ApiVersionsResponse(api_keys=[ApiVersion(api_key=ApiKey.HEARTBEAT, min_version=0, max_version=3)])
    async with opened() as world, trio.open_nursery() as nursery:
        client = world.client
        nursery.start_soon(play_versions, world, ranges)
        assert await client.negotiate(HeartbeatRequest) == 4
        assert await client.negotiate(HeartbeatRequest, highest=3) == 3
        assert await client.negotiate(AlterPartitionRequest) == 2
        for unknown, highest in ((MetadataRequest, None), (FetchRequest, None), (HeartbeatRequest, 0)):
            with pytest.raises(KafkaError, match="UNSUPPORTED_VERSION: test:9092 serves no version of") as refused:
                await client.negotiate(unknown, highest)
            assert refused.value.code == ErrorCode.UNSUPPORTED_VERSION
        for connection in world.connections:
            connection.cut()
        nursery.start_soon(play_versions, world, older)
        assert await client.negotiate(HeartbeatRequest) == 3


async def test_versions_are_asked_for_over_a_connection_that_is_there_already() -> None:
    async with opened() as world, trio.open_nursery() as nursery:

        async def play_peer() -> None:
            await (peer := await world.accept()).echo()
            header, _ = await peer.request()
            heartbeats = ApiVersion(api_key=ApiKey.HEARTBEAT, min_version=0, max_version=1)
            await peer.answer(header, ApiVersionsResponse(api_keys=[heartbeats]))

        nursery.start_soon(play_peer)
        await world.client.send(heartbeat(0), VERSION)
        assert await world.client.negotiate(HeartbeatRequest) == 1


async def test_a_peer_that_does_not_tell_its_versions_is_unavailable() -> None:
    async with opened() as world, trio.open_nursery() as nursery:
        nursery.start_soon(play_versions, world, ApiVersionsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
        with pytest.raises(PeerUnavailableError, match="ApiVersions got error 31"):
            await world.client.negotiate(HeartbeatRequest)
        await world.is_answered()


# --- a whole broker ---------------------------------------------------------------------------------------------------


async def write_and_read(client: BrokerClient) -> None:
    """Create a topic; then a long poll and, over another connection, the record that ends it."""
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    version = await client.negotiate(CreateTopicsRequest)
    created = (await client.send(CreateTopicsRequest(topics=[topic], timeout_ms=5000), version)).topics[0]
    assert created.error_code == 0
    batch = bytes(build_batch([Record(0, time.time_ns() // 1_000_000, None, b"v", [])]))
    data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=batch)])
    written = await client.send(ProduceRequest(acks=1, timeout_ms=5000, topic_data=[data]), 7)
    assert written.responses[0].partition_responses[0].error_code == 0
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    fetch = FetchRequest(
        max_wait_ms=5000,
        min_bytes=1,
        session_epoch=-1,
        topics=[FetchTopic(topic_id=created.topic_id, partitions=[asked])],
    )
    fetched = (await client.send(fetch, await client.negotiate(FetchRequest))).responses[0].partitions[0]
    assert len(fetched.records) == len(batch)


async def test_a_broker_in_memory(tmp_path: Path) -> None:
    async with serving(tmp_path) as network:
        client = BrokerClient(network, *ADDRESS, "broker-1")
        await write_and_read(client)
        with pytest.raises(PeerUnavailableError, match="the peer closed the connection"):
            await client.send(BrokerHeartbeatRequest(broker_id=2), 0)  # an API that only controllers serve
        await client.send(MetadataRequest(topics=[]), 12)
        client.close()


async def test_a_connection_is_secured_before_its_first_request(tmp_path: Path) -> None:
    secured: list[tuple[str, str]] = []

    async def secure(connection: Connection, host: str) -> SecuredConnection:
        secured.append((connection.peer, host))
        return SecuredConnection(connection)

    async with serving(tmp_path) as network:
        client = BrokerClient(network, *ADDRESS, "broker-1", secure=secure)
        await client.send(MetadataRequest(topics=[]), 12)
        await client.send(MetadataRequest(topics=[]), 12)
        assert secured == [("test:9092", "test")]
        client.close()


async def test_a_connection_that_cannot_be_secured_is_closed() -> None:
    opened: list[MemoryConnection] = []

    async def refuse(connection: Connection, host: str) -> SecuredConnection:
        assert isinstance(connection, MemoryConnection)
        opened.append(connection)
        raise OSError("its certificate is another host's")

    network = MemoryNetwork()
    await network.listen("test", 1, 5)
    client = BrokerClient(network, "test", 1, "broker-1", secure=refuse)
    for _ in range(2):
        with pytest.raises(PeerUnavailableError, match="its certificate is another host's"):
            await client.send(MetadataRequest(topics=[]), 12)
    assert [connection.is_closed for connection in opened] == [True, True]


async def test_a_session_that_ends_is_followed_by_another(autojump_clock: trio.testing.MockClock) -> None:
    """What was asked before it ended is answered still, and then that connection is closed (KIP-368)."""
    opened: list[MemoryConnection] = []

    async def secure(connection: Connection, host: str) -> SecuredConnection:
        assert isinstance(connection, MemoryConnection)
        opened.append(connection)
        return SecuredConnection(connection, trio.current_time() + 10)

    async with memory_cluster.running(1) as cluster:
        await cluster.create("t", [1])
        client = BrokerClient(cluster.network, "broker1", 9092, "broker-2", secure=secure)
        answers: list[FetchResponse] = []

        async def wait_for_records() -> None:
            answers.append(await client.send(fetch_request("t", {0: 0}, min_bytes=1, max_wait_ms=15_000), 12))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait_for_records)
            await trio.sleep(11)
            assert len(opened) == 1
            await client.send(MetadataRequest(topics=[]), 12)
            assert [connection.is_closed for connection in opened] == [False, False]
        assert [answer.error_code for answer in answers] == [0]
        assert [connection.is_closed for connection in opened] == [True, False]
        await trio.sleep(10)
        await client.send(MetadataRequest(topics=[]), 12)
        assert [connection.is_closed for connection in opened] == [True, True, False]
        client.close()
        assert all(connection.is_closed for connection in opened)


async def test_a_broker_over_tcp(tmp_path: Path) -> None:
    config = Config({"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"})
    async with running(BrokerServer(config)) as server:
        host, port = split_host_port(server.bootstrap_servers)
        client = BrokerClient(TcpNetwork(TrioWorkers()), host, port, "broker-1")
        await write_and_read(client)
    with pytest.raises(PeerUnavailableError):
        await client.send(MetadataRequest(topics=[]), 12)
