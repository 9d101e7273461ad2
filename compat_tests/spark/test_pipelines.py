"""``ottla spark run``: each of the shipped pipelines as it stands, with what comes in and what must come out."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ottla.compat_tests.session import ClientSession
from ottla.compat_tests.spark.kafka_format import KafkaFormat, fill
from ottla.compat_tests.wire_client import Operator
from ottla.spark import pipeline as package
from ottla.spark.pipeline.declaration import read
from ottla.spark.pipeline.run import run
from ottla.spark.pipeline.topics import check_topics
from ottla.spark.query import JobError

pytestmark = [pytest.mark.client("spark"), pytest.mark.capability("pipelines")]
EXAMPLES = Path(package.__file__).parents[1] / "examples"

Records = Sequence[tuple[str | None, Any]]
"""Key, and a value that is text, None, or goes as JSON."""


@dataclass(frozen=True)
class Example:
    """Runs of a pipeline, one after the other: what has come in before each, and all that is in its sinks after the last."""

    name: str
    runs: Sequence[dict[str, Records]]
    topics: dict[str, Records]
    parquet: dict[str, Sequence[tuple[Any, ...]]]


def at(clock: str) -> str:
    """A time of the day of all the examples."""
    return f"2026-03-01T{clock}Z"


def out(clock: str) -> str:
    """The same as Spark writes it."""
    return f"2026-03-01T{clock}.000Z"


def click(clock: str, page: str = "a", user: str = "u") -> tuple[None, dict[str, str]]:
    return None, {"user": user, "page": page, "at": at(clock)}


def pages(**clicks: int) -> list[dict[str, Any]]:
    return [{"clicks": number, "page": page} for page, number in clicks.items()]


EXPECTED = [
    Example(
        "word-count",
        [{"lines": [(None, "The cat."), (None, "the dog, the cat")]}, {"lines": [(None, "Cat")]}],
        {"word-counts": [("the", 3), ("cat", 2), ("dog", 1), ("cat", 3)]},
        {},
    ),
    Example(
        "clicks-per-minute",
        [
            {"clicks": [click("10:00:05"), click("10:00:50"), click("10:00:10", "b"), click("10:01:00")]},
            {"clicks": [click("10:00:30"), click("10:12:00")]},
            {"clicks": [click("10:00:59"), click("10:30:00")]},
        ],
        {},
        {"lake/clicks-per-minute": [("a", "10:00", 3), ("a", "10:01", 1), ("a", "10:12", 1), ("b", "10:00", 1)]},
    ),
    Example(
        "sessions",
        [
            {"clicks": [click("10:00:00"), click("10:20:00"), click("10:10:00", user="v")]},
            {"clicks": [click("10:45:00"), click("12:00:00")]},
        ],
        {
            "visits": [
                ("u", {"user": "u", "began": out("10:00:00"), "clicks": 3}),
                ("v", {"user": "v", "began": out("10:10:00"), "clicks": 1}),
            ]
        },
        {},
    ),
    Example(
        "enrich",
        [
            {
                "customers": [("c1", {"name": "Ada"}), ("c2", {"name": "Bob"}), ("c2", None)],
                "orders": [(None, {"id": "1", "customer": "c1", "total": 9.5})],
            },
            {
                "customers": [("c1", {"name": "Ada L."})],
                "orders": [(None, {"id": i, "customer": c, "total": 1}) for i, c in (("2", "c1"), ("3", "c2"))],
            },
        ],
        {
            "named-orders": [
                ("1", {"id": "1", "total": 9.5, "name": "Ada"}),
                ("2", {"id": "2", "total": 1.0, "name": "Ada L."}),
                ("3", {"id": "3", "total": 1.0}),
            ]
        },
        {},
    ),
    Example(
        "shipped-in-time",
        [
            {"orders": [(None, {"id": "1", "at": at("08:00:00")}), (None, {"id": "2", "at": at("08:00:00")})]},
            {
                "shipments": [
                    (None, {"order_id": "1", "at": at("09:00:00")}),
                    (None, {"order_id": "2", "at": "2026-03-03T00:00:00Z"}),
                ]
            },
        ],
        {"shipped-in-time": [("1", {"id": "1", "ordered": out("08:00:00"), "shipped": out("09:00:00")})]},
        {},
    ),
    Example(
        "deduplicate",
        [
            {"payments": [("k", {"id": i, "amount": 1, "at": at("08:00:00")}) for i in ("1", "1", "2")]},
            {"payments": [("k", {"id": i, "amount": 1, "at": at("08:01:00")}) for i in ("2", "3")]},
        ],
        {
            "payments-once": [
                ("k", {"id": i, "amount": 1.0, "at": out(c)})
                for i, c in (("1", "08:00:00"), ("2", "08:00:00"), ("3", "08:01:00"))
            ]
        },
        {},
    ),
    Example(
        "latest-row",
        [
            {
                "changes": [
                    (None, {"id": "1", "status": "new", "version": 1}),
                    (None, {"id": "2", "status": "new", "version": 1}),
                ]
            },
            {
                "changes": [
                    (None, {"id": "1", "status": "paid", "version": 3}),
                    (None, {"id": "1", "status": "packed", "version": 2}),
                ]
            },
        ],
        {
            "rows": [
                ("1", {"status": "new", "version": 1}),
                ("2", {"status": "new", "version": 1}),
                ("1", {"status": "paid", "version": 3}),
            ]
        },
        {},
    ),
    Example(
        "top-pages",
        [
            {
                "clicks": [click("10:00:00", page) for page in "aaaabbbccd"]
                + [click("10:01:00", "d"), click("10:10:00")],
            }
        ],
        {
            "top-pages": [
                (
                    None,
                    {
                        "minute": out("10:00:00"),
                        "pages": [{"clicks": n, "page": p} for n, p in ((4, "a"), (3, "b"), (2, "c"))],
                    },
                ),
                (None, {"minute": out("10:01:00"), "pages": [{"clicks": 1, "page": "d"}]}),
            ]
        },
        {},
    ),
    Example(
        "dead-letters",
        [{"orders": [("1", {"id": "1", "total": 2.5}), ("2", "{nothing"), (None, {"id": "3", "total": 1})]}],
        {"orders-dead": [("2", "{nothing")]},
        {"lake/orders": [("1", 2.5), ("3", 1.0)]},
    ),
]


@pytest.fixture
def make_topics(operator: Operator) -> Iterator[Callable[[set[str]], None]]:
    """Creates topics with the names that the pipelines have; they go with the test."""
    made: set[str] = set()

    def make(names: set[str]) -> None:
        for name in names:
            operator.create_topic(name, 1, {"retention.ms": "-1"})
            made.add(name)

    yield make
    for name in made:
        operator.delete_topic(name)


def test_every_example_is_here() -> None:
    assert sorted(example.name for example in EXPECTED) == sorted(path.stem for path in EXAMPLES.glob("*.toml"))


@pytest.mark.parametrize("example", EXPECTED, ids=lambda example: example.name)
def test_example(
    example: Example,
    kafka: KafkaFormat,
    stock: ClientSession,
    make_topics: Callable[[set[str]], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    pipeline = read(EXAMPLES / f"{example.name}.toml", bootstrap_servers=kafka.bootstrap)
    make_topics({topic for coming in example.runs for topic in coming} | example.topics.keys())
    producer = stock.producer()
    for coming in example.runs:
        for topic, records in coming.items():
            for key, value in records:
                producer.send(topic, encoded(value), key=encoded(key), partition=0)
        producer.flush()
        check_topics(pipeline)
        run(kafka.spark, pipeline)
    for topic, expected in example.topics.items():
        written = [(text(row.key), parsed(row.value)) for row in kafka.read(subscribe=topic).collect()]
        assert sorted(written, key=repr) == sorted(expected, key=repr)
    for folder, rows in example.parquet.items():
        stored = kafka.spark.read.parquet(str(tmp_path / folder))
        assert sorted(tuple(map(plain, row[: len(rows[0])])) for row in stored.collect()) == sorted(rows)


def test_lag_is_seen_by_others(
    kafka: KafkaFormat, stock: ClientSession, make_topic: Callable[..., str], group_id: str, tmp_path: Path
) -> None:
    topic = make_topic(2)
    file = tmp_path / "pipeline.toml"
    file.write_text(
        f'name = "lag"\ncheckpoint = "{tmp_path}/checkpoint"\ngroup = "{group_id}"\n'
        f'[sources.records]\ntopics = ["{topic}"]\n'
        f'[sinks.copy]\nview = "records"\nparquet = "{tmp_path}/copy"\n'
    )
    pipeline = read(file, bootstrap_servers=kafka.bootstrap)
    for count, end in ((10, 10), (15, 25)):
        fill(stock, topic, count)
        assert run(kafka.spark, pipeline) == {"copy": count}
        committed = {where: at.offset for where, at in stock.admin.group_offsets(group_id).items()}
        assert committed == {(topic, 0): end, (topic, 1): 0}


COPY = """
name = "copy"
checkpoint = "checkpoint"
[sources.records]
topics = ["{topic}"]
[[steps]]
view = "numbers"
sql = "SELECT {column} FROM records"
[sinks.copy]
view = "numbers"
console = true
"""


def test_a_dry_run(kafka: KafkaFormat, stock: ClientSession, topic: str, tmp_path: Path) -> None:
    fill(stock, topic, 5)
    file = tmp_path / "copy.toml"
    file.write_text(COPY.format(topic=topic, column="CAST(key AS STRING) AS number"))
    command = [sys.executable, "-m", "ottla", "spark", "run", str(file), "--bootstrap-server", kafka.bootstrap]
    dry = subprocess.run([*command, "--dry-run", "3"], capture_output=True, text=True, cwd=tmp_path)
    assert (dry.returncode, dry.stdout) == (0, "copy:\n  number=0\n  number=1\n  number=2\n")
    assert not (tmp_path / "checkpoint").exists()


def test_mistakes_are_found_before_anything_is_read(kafka: KafkaFormat, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "copy.toml"
    file.write_text(COPY.format(topic=topic, column="number"))
    with pytest.raises(JobError, match=r"^steps.0 \(view numbers\): \[UNRESOLVED_COLUMN"):
        run(kafka.spark, read(file, bootstrap_servers=kafka.bootstrap))
    file.write_text(COPY.format(topic=f"{topic}-unknown", column="key"))
    with pytest.raises(JobError, match=rf"^sources.records: \S+ has no topic {topic}-unknown$"):
        check_topics(read(file, bootstrap_servers=kafka.bootstrap))
    with pytest.raises(JobError, match=r"^sources.records: no broker answers at 127.0.0.1:1: "):
        check_topics(read(file, bootstrap_servers="127.0.0.1:1"))


def encoded(value: Any) -> bytes | None:
    return None if value is None else (value if isinstance(value, str) else json.dumps(value)).encode()


def text(value: bytes | None) -> str | None:
    return None if value is None else bytes(value).decode()


def parsed(value: bytes) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return text(value)


def plain(value: Any) -> Any:
    """A column's value as the table above writes it."""
    if hasattr(value, "strftime"):
        return value.strftime("%H:%M")
    return value if isinstance(value, str | int) else float(value)
