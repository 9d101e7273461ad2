"""The outcome of a run as one self-contained HTML page.

Whatever comes from a run is escaped where it is put into markup: ``_tag`` takes text, and Markup for what is markup already.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

from ottla.compat_tests import record
from ottla.compat_tests.record import Cell, Report

CSS = """
:root { color-scheme: light dark; font: 15px/1.4 system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 100rem; padding: 0 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { padding: .25rem .6rem; border: 1px solid #8884; text-align: left; vertical-align: top; white-space: nowrap; }
tr > :first-child { position: sticky; left: 0; background: Canvas; }
td.pass { background: #2a84; } td.fail { background: #d226; font-weight: bold; }
td.skipped { background: #da05; } td.not-run, td.n-a { color: GrayText; }
pre { overflow-x: auto; padding: .6rem; background: #8882; } summary { cursor: pointer; }
"""


class Markup(str):
    """Text that is markup already."""


def html_page(report: Report) -> str:
    """The page."""
    title = f"Stock clients on {report.broker}"
    parts = [
        _tag("h1", title),
        _tag("p", f"{report.summary()}, in {report.seconds} s on {report.date}."),
        _tag("p", _tag("code", report.command)),
        _table(report, details=False),
        *_failures(report),
        *_reasons(report),
        _tag("h2", "Each capability"),
        _table(report, details=True),
    ]
    head = [Markup('<meta charset="utf-8">'), _tag("title", title), Markup(f"<style>{CSS}</style>")]
    page = _tag("html", [_tag("head", head), _tag("body", parts)], lang="en")
    return f"<!doctype html>\n{page}\n"


def _tag(name: str, content: str | Iterable[str] = "", **attributes: str) -> Markup:
    """An element; ``css`` is its class."""
    parts = [content] if isinstance(content, str) else content
    inside = "".join(part if isinstance(part, Markup) else html.escape(part) for part in parts)
    given = {"class" if key == "css" else key: value for key, value in attributes.items()}
    shown = "".join(f' {key}="{html.escape(value)}"' for key, value in given.items())
    return Markup(f"<{name}{shown}>{inside}</{name}>\n")


def _table(report: Report, *, details: bool) -> Markup:
    cells = report.cells(details=details)
    clients = report.clients()
    versions = [_tag("td", report.versions.get(client, "")) for client in clients]
    head = [_tag("tr", [_tag("th", ""), *(_tag("th", client) for client in clients)])]
    head.append(_tag("tr", [_tag("td", "version"), *versions]))
    rows = [
        _tag("tr", [_tag("th", row), *(_cell(cells.get((client, row))) for client in clients)])
        for row in report.rows(details=details)
    ]
    return _tag("table", [_tag("thead", head), _tag("tbody", rows)])


def _cell(cell: Cell | None) -> Markup:
    if cell is None:
        return _tag("td")
    css = cell.outcome.replace(" ", "-").replace("/", "-")
    tests = f"{len(cell.results)} test{'s' if len(cell.results) > 1 else ''}"
    return _tag("td", cell.text(), css=css, title="\n".join([tests, *cell.reasons]))


def _failures(report: Report) -> list[Markup]:
    failed = report.of(record.FAIL)
    if not failed:
        return []
    return [_tag("h2", "Failed")] + [
        _tag(
            "details",
            [
                _tag("summary", f"{result.client}: {result.capability}: {result.reason}"),
                _tag("p", _tag("code", result.test)),
                _tag("pre", result.trace),
            ],
        )
        for result in failed
    ]


def _reasons(report: Report) -> list[Markup]:
    titles = {record.SKIPPED: "Skipped", record.NOT_RUN: "Not run", record.NOT_APPLICABLE: "Not applicable"}
    parts = []
    for outcome, title in titles.items():
        if found := report.of(outcome):
            reasons = dict.fromkeys((r.client, r.capability, r.reason) for r in found)
            lines = [_tag("li", f"{client}, {capability}: {why}") for client, capability, why in reasons]
            parts += [_tag("h2", title), _tag("ul", lines)]
    return parts
