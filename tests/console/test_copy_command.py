"""The command on the page of a copy does what the copy does: both are run on a broker process, and write the same records."""

from __future__ import annotations

import html
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from .helpers.form_reader import FormReader
from .helpers.served import Served, serving
from .test_quickstart import run

pytestmark = pytest.mark.slow
_LIMIT_S = 60
SPANS = {
    "all": {},
    "offsets": {"from": "offset", "at": "3", "until": "15", "partition": "1"},
    "time": {"from": "time", "at": "2026-01-02T00:00Z", "until": "2026-01-03T01:00+01:00"},
    "until": {"until": "2026-01-03"},
}
SHAPES = {
    "as-they-are": {"keeps": "yes"},
    "by-key": {},
    "of-now": {"keeps": "yes", "time": "now", "origin": "yes"},
    "filtered": {"keeps": "yes", "key": 'k"1\\(', "contains": "v", "header": "h=1"},
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Two partitions with records an hour of three days, and an aborted transaction."""
    with serving(tmp_path_factory.mktemp("copies")) as served:
        with closing(KafkaAdminClient(bootstrap_servers=served.address)) as admin:
            names = [f"{way}-{span}-{shape}" for way in ("page", "command") for span in SPANS for shape in SHAPES]
            admin.create_topics([NewTopic(name, 2, 1) for name in ("orders", *names)])
        loading = {"bootstrap_servers": served.address, "transactional_id": "t"}
        with closing(KafkaProducer(**loading)) as producer:
            producer.init_transactions()
            for ends in (producer.abort_transaction, producer.commit_transaction):
                producer.begin_transaction()
                for number in range(72):
                    at = 1_767_225_600_000 + number * 3_600_000
                    value = b"v\xff%d" % number if number % 5 == 0 else b"v%d" % number
                    key = b'k"1\\(' if number % 2 else b"k%d" % number
                    headers = [("h", b"%d" % (number % 3))]
                    producer.send("orders", value, key=key, headers=headers, partition=number % 2, timestamp_ms=at)
                ends()
        yield served


@pytest.mark.parametrize(
    ("span", "shape"),
    [("all", "as-they-are"), ("offsets", "by-key"), ("time", "of-now"), ("until", "filtered")],
)
def test_the_command_copies_the_same(filled: Served, span: str, shape: str) -> None:
    given = {"from": "oldest", **SPANS[span], **SHAPES[shape]}
    if "jq" in (command := shown(filled, {**given, "to": f"command-{span}-{shape}"})[0]) and shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    run(command, filled)
    _, form = shown(filled, {**given, "to": f"page-{span}-{shape}"})
    address = f"{filled.console}/topics/orders/copy"
    page = urlopen(Request(address, urlencode(form).encode(), {"Origin": filled.console}), timeout=_LIMIT_S).geturl()
    while "so far" in urlopen(page, timeout=_LIMIT_S).read().decode():
        time.sleep(0.05)
    by_page, by_command = (read(filled, f"{way}-{span}-{shape}", shape) for way in ("page", "command"))
    assert by_page == by_command
    assert by_page


def shown(served: Served, given: dict[str, str]) -> tuple[str, dict[str, str]]:
    """The command and the form of a preview."""
    text = urlopen(f"{served.console}/topics/orders/copy?{urlencode(given)}", timeout=_LIMIT_S).read().decode()
    (command,) = re.findall(r'<pre class="command" tabindex="0">(.*?)</pre>', text, re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", "", command)), FormReader(text).fields


def read(served: Served, topic: str, shape: str) -> list[tuple[object, ...]]:
    """All records of a topic, with their times where these are kept, and in their order where partitions are."""
    places = [TopicPartition(topic, number) for number in (0, 1)]
    found: list[tuple[object, ...]] = []
    with closing(KafkaConsumer(bootstrap_servers=served.address, auto_offset_reset="earliest")) as consumer:
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        while any(consumer.position(each) < ends[each] for each in places):
            for records in consumer.poll(1000).values():
                for each in records:
                    at = None if "now" in SHAPES[shape].get("time", "") else each.timestamp
                    offset = each.offset if "keeps" in SHAPES[shape] else None
                    found.append((each.partition, offset, at, each.key, each.value, each.headers))
    return sorted(found)
