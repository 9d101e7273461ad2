"""The outcome of a run as a page: what a broker or a client said is text in it, whatever it looks like."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ottla.compat_tests.html_page import html_page
from ottla.compat_tests.markdown_page import IN_KRAFT, NOT_SERVED, TOO_OLD, page
from ottla.compat_tests.record import Report, Result, together
from ottla.compat_tests.spark import versions_page

EVIL = "</td></pre><script>alert('x')</script>\" onmouseover=\"x & | [y](z) `q`"


@pytest.fixture
def report() -> Report:
    results = [
        Result(f"test[{EVIL}]", "java", "seek", "fail", f"reason {EVIL}", f"trace {EVIL}\nsecond line"),
        Result("t2", "java", "long poll", "skipped", f"skipped {EVIL}"),
        Result("t3", "kcat", "metadata", "pass"),
    ]
    return Report(f"broker {EVIL}", f"command {EVIL}", "2026-01-31", 7, {"java": f"version {EVIL}"}, results)


class Reader(HTMLParser):
    """Collects elements, their attributes' names, and text."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.open: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes.update(name for name, _ in attributes)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("section", [NOT_SERVED, IN_KRAFT, TOO_OLD], ids=["not served", "in KRaft", "too old"])
def test_what_no_run_says_is_on_the_page(report: Report, section: str) -> None:
    assert section in page([report])
    assert section in (Path(__file__).parents[2] / "docs/compatibility.md").read_text(encoding="utf-8")


def test_html_is_escaped(report: Report) -> None:
    reader = Reader()
    reader.feed(html_page(report))
    assert reader.open == []
    assert "script" not in reader.elements
    assert reader.attributes == {"lang", "charset", "class", "title"}
    for place in ("broker", "command", "version", "reason", "trace", "skipped"):
        assert f"{place} {EVIL}" in reader.text, place


def test_html_needs_nothing_beside_itself(report: Report) -> None:
    shown = html_page(report)
    assert "href=" not in shown
    assert "src=" not in shown
    assert "url(" not in shown


def test_markdown_keeps_its_tables(report: Report) -> None:
    lines = page([report]).splitlines()
    rows = [line for line in lines if line.startswith("| consume")]
    assert rows == ["| consume | **fail 1/2** |"]
    # The command is a block of code, which Markdown takes as it is.
    assert not any("<script" in line.replace("\\<", "") for line in lines if not line.startswith("    "))
    (version,) = [line for line in lines if line.startswith("| java | client library")]
    assert version.replace("\\|", "").count("|") == 4


def test_markdown_tells_where_two_brokers_differ(report: Report) -> None:
    other = Report("other", "command", "2026-01-31", 7, {}, [Result("t3", "kcat", "metadata", "fail", "assert 1 == 2")])
    shown = page([report, other])
    assert "- kcat, metadata (t3): pass, on other fail" in shown
    assert "## Failed on other\n\n- kcat, metadata (t3): assert 1 == 2" in shown


def test_capabilities_that_a_client_lacks_for_one_reason_are_a_row() -> None:
    results = [
        Result("t1", "rskafka", "static membership", "n/a", "no groups"),
        Result("t2", "rskafka", "delete groups", "n/a", "no groups"),
        Result("t3", "rskafka", "log dirs", "n/a", "no such call"),
    ]
    shown = page([Report(broker, "command", "2026-01-31", 7, {}, results) for broker in ("one", "other")])
    rows = [line for line in shown.splitlines() if line.startswith("| rskafka | `")]
    assert rows == [
        "| rskafka | `delete groups`, `static membership` | no groups |",
        "| rskafka | `log dirs` | no such call |",
    ]


def test_of_two_runs_on_one_broker_the_later_result_counts(report: Report) -> None:
    again = [Result(f"test[{EVIL}]", "java", "seek", "pass"), Result("t4", "aiokafka", "seek", "pass")]
    both = together(report, Report(report.broker, "second", "2026-02-01", 3, {"aiokafka": "1"}, again))
    cells = {where: cell.text() for where, cell in both.cells(details=True).items() if where[1] == "seek"}
    assert cells == {("java", "seek"): "pass", ("aiokafka", "seek"): "pass"}
    assert len(both.results) == 4
    shown = page([both])
    assert f"    command {EVIL}\n    second\n" in shown
    assert "On 2026-02-01, in 10 s: 1 skipped, 3 passed." in shown


def test_versions_of_spark(tmp_path: Path) -> None:
    """A column for each version and broker, ours first; of a test that ran again the last result."""

    def run(broker: str, spark: str, *results: tuple[str, str, str]) -> Report:
        found = [Result(test, "spark", row, outcome, "why" * (outcome != "pass")) for test, row, outcome in results]
        return Report(broker, "command", "2026-01-31", 7, {"spark": f"pyspark {spark}"}, found)

    ours = versions_page.OURS
    read, real_time = ("t1", "batch read"), ("t3", "real-time mode")
    runs = [
        run("Apache Kafka 4.3.1", "4.0.0", (*read, "pass"), (*real_time, "n/a")),
        run(ours, "4.2.0", (*read, "fail"), ("t2", "batch read", "pass"), (*real_time, "pass")),
        run(ours, "4.0.0", (*read, "fail"), (*real_time, "n/a")),
        run(ours, "4.0.0", (*read, "pass")),
    ]
    files = [tmp_path / f"{number}.json" for number in range(len(runs))]
    for file, report in zip(files, runs, strict=True):
        file.write_text(json.dumps(report.as_json()))
    shown = versions_page.page(versions_page.columns_of(files))
    assert f"|  | pyspark 4.0.0, {ours} | pyspark 4.2.0, {ours} | pyspark 4.0.0, Apache Kafka 4.3.1 |\n" in shown
    assert "| batch read | 1 pass | **1 fail, 1 pass** | 1 pass |\n" in shown
    assert "| real-time mode | n/a | 1 pass | n/a |\n" in shown
    assert f"## Not passed: pyspark 4.2.0, {ours}\n\n- t1: fail, why\n" in shown
