"""Kafka Streams with processing.guarantee=exactly_once_v2: each word counts once, whatever dies in between.

A word count keeps its counts in a store on disk, the store's changes in a compacted topic, and the words on their way in
another topic: all of it, the counts that it puts out and its place in the input change in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.compat_tests.brokers import Restartable
from ottla.compat_tests.clients.registry import CLIENTS
from ottla.compat_tests.java.streams import PARTITIONS, Feed, WordCount, compile_word_count
from ottla.compat_tests.session import ClientSession
from ottla.compat_tests.wire_client import Operator

pytestmark = pytest.mark.client("kafka-streams")
BUSY = 1_000
WRITTEN_BY = "confluent-kafka"


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled word count."""
    folder = tmp_path_factory.mktemp("word-count")
    compile_word_count(folder)
    return folder


@pytest.fixture
def word_count(
    classes: Path, bootstrap: str, fresh_name: Callable[[str], str], tmp_path: Path, operator: Operator
) -> Iterator[WordCount]:
    """A word count on the broker that the run shares; the topics that it makes for itself are deleted again."""
    application_id = fresh_name("word-count")
    process = WordCount(classes, tmp_path, bootstrap, application_id)
    yield process
    process.close()
    for topic in operator.topics():
        if topic.startswith(application_id):
            operator.delete_topic(topic)


def assert_counted_once(feed: Feed) -> None:
    """For each word 1, 2, 3, ... in this order, and nothing else."""
    assert feed.counts == {word: list(range(1, times + 1)) for word, times in feed.written.items()}


@pytest.mark.capability("exactly_once_v2: word count")
def test_word_count(
    word_count: WordCount, make_topic: Callable[..., str], sessions: Callable[[str], ClientSession], tmp_path: Path
) -> None:
    source, target = make_topic(PARTITIONS), make_topic(PARTITIONS)
    feed = Feed(sessions(WRITTEN_BY), word_count, source, target)
    word_count.start(tmp_path / "state", source, target)
    feed.write_until_seen(BUSY)
    feed.read_all()
    assert_counted_once(feed)


@pytest.mark.capability("exactly_once_v2: kill -9 of the word count")
@pytest.mark.parametrize("state", ["kept", "lost"])
def test_word_count_is_killed(
    word_count: WordCount,
    make_topic: Callable[..., str],
    sessions: Callable[[str], ClientSession],
    tmp_path: Path,
    state: str,
) -> None:
    source, target = make_topic(PARTITIONS), make_topic(PARTITIONS)
    feed = Feed(sessions(WRITTEN_BY), word_count, source, target)
    word_count.start(tmp_path / "state", source, target)
    feed.write_until_seen(BUSY)
    feed.write_until_open()
    word_count.kill()
    while not feed.is_open():  # it was quicker
        word_count.start(tmp_path / "state", source, target)
        feed.write_until_open()
        word_count.kill()
    # With the folder its transactional ids are gone too: what was open is not fenced, it has to time out.
    word_count.start(tmp_path / ("state" if state == "kept" else "new state"), source, target)
    feed.write_until_seen(feed.seen() + BUSY)
    feed.read_all()
    assert_counted_once(feed)


@pytest.mark.restart
@pytest.mark.capability("exactly_once_v2: kill -9 of the broker")
def test_broker_is_killed(classes: Path, broker_process: Restartable, tmp_path: Path) -> None:
    for topic in ("lines", "counts"):
        Operator(broker_process.bootstrap).create_topic(topic, PARTITIONS, {})
    driver = CLIENTS[WRITTEN_BY].connect(broker_process.bootstrap)
    client = ClientSession(WRITTEN_BY, driver)
    word_count = WordCount(classes, tmp_path, broker_process.bootstrap, "word-count")
    try:
        feed = Feed(client, word_count, "lines", "counts")
        word_count.start(tmp_path / "state", "lines", "counts")
        feed.write_until_seen(BUSY)
        for _ in range(2):
            feed.write_until_open()
            broker_process.kill()
            broker_process.start()
            feed.write_until_seen(feed.seen() + BUSY)
        feed.read_all()
    finally:
        word_count.close()
        client.close()
        driver.close()
    assert_counted_once(feed)
