"""What is written about the metrics agrees with them: the table in the docs, and the dashboard."""

from __future__ import annotations

import json
import re
from pathlib import Path

from prometheus_client import GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR

from ottla.broker.metrics.families import FAMILIES
from ottla.broker.metrics.families.family import MetricType
from ottla.broker.metrics.page import with_table

DOCS = Path(__file__).resolve().parents[3] / "docs"
REFERENCE = DOCS / "metrics.md"
MONITORING = DOCS / "monitoring.md"
DASHBOARD = DOCS / "grafana-dashboard.json"
_METRIC = re.compile(r"\b(?:kafka|ottla|process|python)_[a-z0-9_]+\b")


def sample_names() -> set[str]:
    """Every name that a query may use."""
    names = set()
    for family in FAMILIES:
        endings = ("_bucket", "_count", "_sum") if family.kind is MetricType.HISTOGRAM else ("",)
        names |= {family.name + ending for ending in endings}
    for collector in (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR):
        names |= {sample.name for family in collector.collect() for sample in family.samples}
    return names


def test_the_table_in_the_docs_is_up_to_date() -> None:
    page = REFERENCE.read_text()
    assert with_table(page) == page, "run `make docs`"
    assert all(f"| `{family.name}` |" in page for family in FAMILIES)


def test_the_docs_name_metrics_that_are_there() -> None:
    known = sample_names() | {family.name for family in FAMILIES}
    others = {"kafka_exporter"}  # a program
    written = REFERENCE.read_text() + MONITORING.read_text()
    assert set(_METRIC.findall(written)) - others - not_there() <= known


def test_the_metrics_that_the_docs_say_are_not_there_are_not() -> None:
    names = not_there()
    assert "kafka_network_requestchannel_requestqueuesize" in names
    assert names.isdisjoint(family.name for family in FAMILIES)


def not_there() -> set[str]:
    """The names in the second column of their table; not of those that are there in another form."""
    section = REFERENCE.read_text().partition("## Kafka's metrics that are not there\n")[2].partition("\n## ")[0]
    cells = [line.split("|")[2] for line in section.splitlines() if line.startswith("|")]
    return {name for cell in cells if "`quantile`" not in cell for name in _METRIC.findall(cell)}


def expressions() -> list[str]:
    dashboard = json.loads(DASHBOARD.read_text())
    found = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    return found + [str(variable["query"]) for variable in dashboard["templating"]["list"]]


def test_the_dashboard_asks_for_metrics_that_are_there() -> None:
    asked = {name for expression in expressions() for name in _METRIC.findall(expression)}
    assert asked <= sample_names()


def test_the_dashboard_asks_by_labels_that_are_there() -> None:
    labels = {family.name: set(family.labels) for family in FAMILIES}
    used = re.compile(r"by \(([^)]*)\) \((?:rate\()?([a-z_]+?)(?:_bucket)?\{")
    checked = 0
    for expression in expressions():
        for names, metric in used.findall(expression):
            assert set(names.replace(" ", "").split(",")) <= labels[metric] | {"le", "instance"}
            checked += 1
    assert checked > 10


def test_the_dashboard_shows_every_metric() -> None:
    asked = {name for expression in expressions() for name in _METRIC.findall(expression)}
    for family in FAMILIES:
        assert asked & {family.name, family.name + "_bucket"}, f"{family.name} is not shown"
