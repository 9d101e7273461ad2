"""What a client said last, before it broke the protocol: in a file in the log directory, to be read by ``wire decode``."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trio

from ottla.base.memory_network import MemoryNetwork
from ottla.broker.listeners.flight_recorder import MOST_FILES, MOST_FRAMES, MOST_KEPT
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.recorded import decoded_recording
from ottla.wire.records import Record, build_batch

from ...helpers.memory_broker import ADDRESS, frame, read_answer, serving
from ..helpers.protocol_errors import GARBAGE, HastyClock


def metadata(correlation_id: int, name_length: int = 0) -> bytes:
    topics = [MetadataRequestTopic(name="x" * name_length)] if name_length else []
    return frame(MetadataRequest(topics=topics), 9, correlation_id)


async def die(network: MemoryNetwork, folder: Path, frames: Sequence[bytes], *, pipelined: bool) -> dict[str, Any]:
    """Send ``frames``, the last one being bad, on a new connection; the recording, decoded."""
    known = set(folder.glob("protocol-error-*"))
    client = await network.connect(*ADDRESS)
    *good, bad = frames
    if pipelined:
        await client.send([b"".join(frames)])
        for _ in good:
            await read_answer(client)
    else:
        for data in good:
            await client.send([data])
            await read_answer(client)
        await client.send([bad])
    with trio.fail_after(20):
        assert await client.receive() == b""
        while not (new := set(folder.glob("protocol-error-*.json")) - known):
            await trio.sleep(0.005)  # written in a worker thread after the connection was closed
    (file,) = new
    return decoded_recording(file.read_text())


def correlation_ids(recorded: dict[str, Any]) -> list[int]:
    return [request["header"]["correlation_id"] for request in recorded["requests"]]


async def test_the_last_requests_are_kept_with_the_one_at_fault(tmp_path: Path) -> None:
    async with serving(tmp_path, clock=HastyClock()) as network:
        frames = [*(metadata(number) for number in range(5)), GARBAGE]
        recorded = await die(network, tmp_path, frames, pipelined=False)
    (file,) = tmp_path.glob("protocol-error-*.json")
    for words, given in (([file], None), (["-"], file.read_bytes())):
        command = [sys.executable, "-m", "ottla.wire", "decode", *words]
        done = await trio.run_process(command, stdin=given or b"", capture_stdout=True)
        assert json.loads(done.stdout) == recorded
    assert correlation_ids(recorded) == [0, 1, 2, 3, 4, 666]
    assert [request.get("message") for request in recorded["requests"]] == ["MetadataRequest"] * 5 + [None]
    last = recorded["requests"][-1]
    assert last["api"] == "METADATA"
    assert "no version 99" in last["problem"]
    assert last["hex"] == GARBAGE[4:].hex()
    assert "version 99" in recorded["error"]
    assert recorded["listener"] == "PLAINTEXT"


@pytest.mark.parametrize("pipelined", [True, False])
async def test_of_small_requests_always_the_last_ones_are_there(tmp_path: Path, pipelined: bool) -> None:
    """However many there were: the buffer begins again after every 8 KiB, that is here after some 390 requests."""
    async with serving(tmp_path, clock=HastyClock()) as network:
        for count in (1, MOST_FRAMES - 1, 300, 389, 390, 391, 392, 405, 781, 783, 800):
            frames = [*(metadata(number) for number in range(count)), GARBAGE]
            recorded = await die(network, tmp_path, frames, pipelined=pipelined)
            expected = [*range(count), 666][-MOST_FRAMES:]
            assert correlation_ids(recorded) == expected, f"{count} requests"


async def test_requests_of_all_sizes_are_kept_in_their_order(tmp_path: Path) -> None:
    """Large ones with their first bytes only, and some of the earlier ones not at all."""
    sizes = (100, 200, 5000, 200, 9000, 100, 240, 20_000, 100, 30_000, 200, 100)
    async with serving(tmp_path, clock=HastyClock()) as network:
        for count in range(1, len(sizes) + 1):
            sent = [metadata(number, size) for number, size in enumerate(sizes[:count])]
            recorded = await die(network, tmp_path, [*sent, GARBAGE], pipelined=False)
            found = correlation_ids(recorded)
            assert found == sorted(found)
            assert found[-2:] == [count - 1, 666]
            for number, request in zip(found[:-1], recorded["requests"], strict=False):
                assert request["size"] == len(sent[number]) - 4
                if request["size"] <= MOST_KEPT and "kept" not in request:
                    assert len(request["body"]["topics"][0]["name"]) == sizes[number]
                else:
                    assert request["hex"] == sent[number][4 : 4 + request["kept"]].hex()


async def test_what_is_no_request_at_all_is_kept_too(tmp_path: Path) -> None:
    async with serving(tmp_path, clock=HastyClock()) as network:
        said = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"
        recorded = await die(network, tmp_path, [said], pipelined=False)
        negative = await die(network, tmp_path, [struct.pack(">i", -5) + b"what follows"], pipelined=False)
    (request,) = recorded["requests"]
    assert bytes.fromhex(request["hex"]) == said[4:]
    (request,) = negative["requests"]
    assert (request["size"], bytes.fromhex(request["hex"])) == (-5, b"what follows")


async def test_records_are_summed_up(tmp_path: Path) -> None:
    async with serving(tmp_path, clock=HastyClock()) as network:
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        create = frame(CreateTopicsRequest(topics=[topic], timeout_ms=5000), 5, 1)
        records = bytes(build_batch([Record(0, 1, None, b"v", [])]))
        data = PartitionProduceData(index=0, records=records)
        request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=[data])])
        recorded = await die(network, tmp_path, [create, frame(request, 7, 2), GARBAGE], pipelined=False)
    shown = recorded["requests"][1]["body"]["topic_data"][0]["partition_data"][0]["records"]
    assert shown["batches"][0]["record_count"] == 1


async def test_there_are_never_many_files(tmp_path: Path) -> None:
    async with serving(tmp_path, clock=HastyClock()) as network:
        for number in range(MOST_FILES + 4):
            await die(network, tmp_path, [metadata(number), GARBAGE], pipelined=False)
    files = sorted(tmp_path.glob("protocol-error-*"), key=lambda file: int(file.stem.rpartition("-")[2]))
    numbers = [int(file.stem.rpartition("-")[2]) for file in files]
    assert numbers == list(range(5, MOST_FILES + 5))


async def test_a_second_one_at_once_is_not_written(tmp_path: Path) -> None:
    class FrozenClock(HastyClock):
        def elapsed(self) -> float:  # type: ignore[override]
            return 0.0

    async with serving(tmp_path, clock=FrozenClock()) as network:
        await die(network, tmp_path, [GARBAGE], pipelined=False)
        for _ in range(3):
            client = await network.connect(*ADDRESS)
            await client.send([GARBAGE])
            with trio.fail_after(20):
                assert await client.receive() == b""
    assert len(list(tmp_path.glob("protocol-error-*"))) == 1


def test_a_file_that_is_no_recording_gives_one_line(tmp_path: Path) -> None:
    for number, content in enumerate(("", "{}", '{"frames": [1]}', '{"frames": [{"size": 1, "hex": "zz"}]}', "[]")):
        file = tmp_path / str(number)
        file.write_text(content)
        done = subprocess.run([sys.executable, "-m", "ottla.wire", "decode", file], capture_output=True, check=False)
        assert done.returncode == 1
        assert done.stderr.startswith(b"error: ")
        assert done.stderr.count(b"\n") == 1
    missing = subprocess.run(
        [sys.executable, "-m", "ottla.wire", "decode", tmp_path / "missing"], capture_output=True, check=False
    )
    assert missing.returncode == 1
    assert missing.stderr.count(b"\n") == 1
