"""The load generator and the sink of the benchmarks: what each sends the other, and what the generator does not let pass."""

from __future__ import annotations

import shutil
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ottla
from ottla.bench.brokers import RunningBroker
from ottla.bench.c_programs import compiled
from ottla.bench.java import ToolFailed
from ottla.bench.load_generator import LoadGenerator, batch, fetch_frame, produce_request, records_in
from ottla.bench.sink import RunningSink
from ottla.bench.usage import Span
from ottla.compat_tests.raw.requests import produce
from ottla.compat_tests.wire_client import Operator, connect
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

needs_compiler = pytest.mark.skipif(not (shutil.which("gcc") or shutil.which("cc")), reason="no C compiler")
ONE = batch(1)


@pytest.fixture(scope="module")
def sink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with RunningSink(tmp_path_factory.mktemp("sink") / "own") as running:
        yield running


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the generator is compiled once for all tests."""
    return tmp_path_factory.mktemp("programs")


@needs_compiler
@pytest.mark.parametrize("name", ["load", "sink"])
def test_programs_compile_without_a_warning(name: str, tmp_path: Path) -> None:
    compiled(name, tmp_path, "-Werror")


def test_without_a_compiler_the_message_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolFailed, match=r"load\.c is compiled .* no gcc"):
        compiled("load", tmp_path)


@needs_compiler
def test_sink_answers_metadata_and_every_produce_in_its_order(sink: RunningBroker) -> None:
    partitions = [PartitionProduceData(index=number, records=ONE) for number in range(3)]
    request = ProduceRequest(
        acks=-1, timeout_ms=1, topic_data=[TopicProduceData(name="any", partition_data=partitions)]
    )
    with connect(sink.bootstrap) as connection:
        (broker,) = connection.call(MetadataRequest(topics=[]), 1).brokers
        assert f"{broker.host}:{broker.port}" == sink.bootstrap
        for _ in range(2):
            connection.send(request, 7)
        for _ in range(2):
            (topic,) = connection.receive().responses  # it checks the correlation id
            assert topic.name == "any"
            assert [(each.index, each.error_code) for each in topic.partition_responses] == [(0, 0), (1, 0), (2, 0)]


@needs_compiler
def test_sink_hangs_up_at_what_it_does_not_know(sink: RunningBroker) -> None:
    with connect(sink.bootstrap) as connection, pytest.raises(EOFError):
        connection.call(MetadataRequest(topics=[]), 12)


@needs_compiler
@pytest.mark.parametrize(
    ("records", "partitions", "connections", "in_flight"),
    [(1, 1, 1, 1), (1, 1, 30, 3), (9000, 1, 2, 5), (1, 1000, 1, 40)],
)
def test_generator_gets_an_answer_to_each_request(
    records: int, partitions: int, connections: int, in_flight: int, sink: RunningBroker, programs: Path
) -> None:
    request = produce_request("topic", range(partitions), batch(records))
    with LoadGenerator(programs, sink.port, request, connections, in_flight) as generator:
        for requests in (1, 200):
            done = generator.run(requests)
            assert done["requests_s"] > 0
            assert 0 < done["p50_us"] <= done["p99_us"]


@needs_compiler
def test_span_has_the_cpu_time_of_a_client_that_goes_on_running(sink: RunningBroker, programs: Path) -> None:
    with LoadGenerator(programs, sink.port, produce_request("topic", [0], ONE)) as generator:
        with Span([sink.pid]) as without:
            generator.run(2000)
        with Span([sink.pid], [generator.pid]) as span:
            generator.run(2000)
    assert span.client_cpu_s > without.client_cpu_s
    assert span.cpu_s_of == {sink.pid: span.broker_cpu_s}
    assert span.broker_cpu_s > 0


@needs_compiler
def test_generator_writes_what_a_broker_stores(programs: Path) -> None:
    with ottla.Broker() as broker:
        broker.create_topic("topic", partitions=2)
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        with LoadGenerator(programs, port, produce_request("topic", [0, 1], batch(3), acks=-1), 4, 2) as generator:
            generator.run(20)
        assert len(broker.records("topic")) == 20 * 2 * 3


@needs_compiler
def test_generator_ends_at_an_error_of_a_partition(programs: Path) -> None:
    with ottla.Broker() as broker:
        broker.create_topic("topic", partitions=1)
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        _ends(programs, port, [0, 7], "Produce returned error 3 for partition 7")


@needs_compiler
def test_generator_takes_no_answer_to_another_request(programs: Path) -> None:
    with _answering(struct.pack(">ii", 4, 5)) as port:
        _ends(programs, port, [0], "answer 5 came where 0 was due")


@needs_compiler
def test_generator_takes_no_answer_for_fewer_partitions(programs: Path) -> None:
    body = struct.pack(">iih5siihqqqi", 0, 1, 5, b"topic", 1, 0, 0, 0, -1, 0, 0)
    with _answering(struct.pack(">i", len(body)) + body) as port:
        _ends(programs, port, [0, 1], "an answer has 1 partitions, its request 2")


def _ends(programs: Path, port: int, partitions: list[int], message: str) -> None:
    """With this message, at the answer to its first request."""
    request = produce_request("topic", partitions, ONE)
    with pytest.raises(ToolFailed, match=message), LoadGenerator(programs, port, request) as generator:
        generator.run(1)


@needs_compiler
def test_generator_sends_nothing_but_produce_and_fetch(programs: Path, sink: RunningBroker) -> None:
    with pytest.raises(ToolFailed, match="is no frame of Produce v7"), LoadGenerator(programs, sink.port, b"\0" * 40):
        pass


def test_fetches_have_to_bring_records(programs: Path) -> None:
    with ottla.Broker() as broker, connect(broker.bootstrap_servers) as connection:
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        Operator(broker.bootstrap_servers).create_topic("t", 2, {})
        assert produce(connection, "t", batch(10)).error_code == 0
        with LoadGenerator(programs, port, fetch_frame("t", 0), in_flight=3) as generator:
            assert generator.run(20)["requests_s"] > 0
        with (
            pytest.raises(ToolFailed, match="Fetch returned errors 0 and 0, and 0 bytes"),
            LoadGenerator(programs, port, fetch_frame("t", 1)) as generator,
        ):
            generator.run(1)


def test_a_batch_is_as_large_as_fits() -> None:
    for size in (200, 1 << 10, 16 << 10):
        records = records_in(size)
        assert len(batch(records)) <= size < len(batch(records + 1))


@contextmanager
def _answering(answer: bytes) -> Iterator[int]:
    """The port of a server that answers the first bytes of its first connection with these."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1)
                connection.sendall(answer)
                while connection.recv(1 << 16):
                    pass

        serving = threading.Thread(target=serve)
        serving.start()
        yield listener.getsockname()[1]
        serving.join()
