"""Topics that a pipeline reads and writes are looked for before Spark is started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.spark.pipeline.declaration import Pipeline, read
from ottla.spark.pipeline.topics import check_topics
from ottla.spark.query import JobError
from ottla.testing.broker import Broker

COPY = """
name = "copy"
checkpoint = "checkpoint"
[sources.records]
{source}
[sinks.copy]
view = "records"
topic = "{sink}"
"""


@pytest.fixture(scope="module", params=["true", "false"])
def creates(request: pytest.FixtureRequest) -> bool:
    """Whether the broker creates the topics that are written to."""
    return str(request.param) == "true"


@pytest.fixture(scope="module")
def broker(creates: bool) -> Iterator[Broker]:
    with Broker(properties={"auto.create.topics.enable": str(creates).lower()}) as running:
        running.create_topic("orders")
        running.create_topic("orders-copy")
        yield running


def copy(folder: Path, broker: Broker, source: str, sink: str) -> Pipeline:
    file = folder / "copy.toml"
    file.write_text(COPY.format(source=source, sink=sink))
    return read(file, bootstrap_servers=broker.bootstrap_servers)


def test_topics_that_are_there(tmp_path: Path, broker: Broker) -> None:
    check_topics(copy(tmp_path, broker, 'topics = ["orders"]', "orders-copy"))
    check_topics(copy(tmp_path, broker, 'pattern = "ord.*"', "orders-copy"))


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ('topics = ["orders", "payments"]', r"has no topic payments$"),
        ('pattern = "pay.*"', r"has no topic whose name matches pay\.\*$"),
    ],
)
def test_a_topic_to_read_is_missing(tmp_path: Path, broker: Broker, source: str, line: str) -> None:
    with pytest.raises(JobError, match=rf"^sources.records: {broker.bootstrap_servers} {line}"):
        check_topics(copy(tmp_path, broker, source, "orders-copy"))


def test_a_topic_to_write_is_missing(tmp_path: Path, broker: Broker, creates: bool) -> None:
    pipeline = copy(tmp_path, broker, 'topics = ["orders"]', "new")
    if creates:
        check_topics(pipeline)
        return
    with pytest.raises(
        JobError, match=r"^sinks.copy: \S+ has no topic new, and does not create topics by itself: create it$"
    ):
        check_topics(pipeline)
