"""The archive job's options, and the one line that becomes of Spark's errors. The job itself runs in compat_tests."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from ottla.spark.archive import Archive
from ottla.spark.commands.archive import default_group
from ottla.spark.kafka_admin import check_reachable
from ottla.spark.query import JobError


def archive(**options: Any) -> Archive:
    return Archive(**{"bootstrap_servers": "127.0.0.1:9092", "output": "/lake", "topics": ("orders",), **options})


def test_reader_options() -> None:
    assert archive(topics=("orders", "payments")).reader_options() == {
        "kafka.bootstrap.servers": "127.0.0.1:9092",
        "kafka.max.poll.records": "20000",
        "kafka.fetch.max.wait.ms": "50",
        "subscribe": "orders,payments",
        "startingOffsets": "earliest",
        "failOnDataLoss": "true",
        "includeHeaders": "true",
    }


def test_reader_options_that_were_asked_for() -> None:
    options = archive(
        topics=(),
        pattern="orders-.*",
        starting_offsets='{"orders-eu": {"0": 5}}',
        max_offsets_per_trigger=1000,
        fail_on_data_loss=False,
        options={"kafka.max.poll.records": "7", "minPartitions": "4"},
    ).reader_options()
    assert "subscribe" not in options
    assert options["subscribePattern"] == "orders-.*"
    assert options["startingOffsets"] == '{"orders-eu": {"0": 5}}'
    assert options["maxOffsetsPerTrigger"] == "1000"
    assert options["failOnDataLoss"] == "false"
    assert (options["kafka.max.poll.records"], options["minPartitions"]) == ("7", "4")


@pytest.mark.parametrize(
    ("output", "checkpoint", "location"),
    [
        ("/lake", None, "/lake/_checkpoint"),
        ("s3a://lake/orders/", None, "s3a://lake/orders/_checkpoint"),
        ("/lake", "/state", "/state"),
    ],
)
def test_checkpoint(output: str, checkpoint: str | None, location: str) -> None:
    assert archive(output=output, checkpoint=checkpoint).checkpoint_location == location


@pytest.mark.parametrize(
    ("output", "options", "group_id"),
    [
        ("/lakes/orders/", {}, "ottla-archive-orders"),
        ("s3a://lake/orders", {"kafka.max.poll.records": "7"}, "ottla-archive-orders"),
        ("hdfs://lake/orders/", {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "PLAIN"}, ""),
    ],
)
def test_group_unless_one_is_named(output: str, options: dict[str, str], group_id: str) -> None:
    assert default_group(output, options) == group_id


@pytest.mark.parametrize("options", [{"topics": ()}, {"pattern": "x"}])
def test_topics_by_name_or_by_pattern(options: dict[str, Any]) -> None:
    with pytest.raises(JobError, match="either by name or by pattern"):
        archive(**options)


def test_a_pattern_that_is_none() -> None:
    with pytest.raises(JobError, match=r"the pattern 'a\(' is not a regular expression"):
        archive(topics=(), pattern="a(")


@pytest.mark.parametrize("text", ["first", "5", "[]", '{"orders": 5}', '{"orders": {"0": "5"}}', "{"])
def test_starting_offsets_that_are_none(text: str) -> None:
    with pytest.raises(JobError, match="starting offsets are earliest, latest or JSON"):
        archive(starting_offsets=text)


def test_one_broker_that_answers_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        check_reachable(f"127.0.0.1:1,127.0.0.1:{port}")


@pytest.mark.parametrize("servers", ["127.0.0.1:1", "127.0.0.1:1,127.0.0.1:port"])
def test_no_broker_answers(servers: str) -> None:
    with pytest.raises(JobError, match=f"no broker answers at {servers.split(',')[0]}: "):
        check_reachable(servers)
