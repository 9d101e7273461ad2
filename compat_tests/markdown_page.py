"""The generator of docs/compatibility.md: ``python -m ottla.compat_tests.markdown_page FILE…`` prints it.

Each file is what ``ottla compat --json FILE`` wrote. Files of the same broker are one table: of a test that is in several of
them the last result counts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ottla.compat_tests import programs, record
from ottla.compat_tests.clients.registry import CLIENTS
from ottla.compat_tests.record import Cell, Report

INTRODUCTION = """\
# Compatibility

Stock clients run the same tests on Ottla and on Apache Kafka. A test that Apache Kafka fails is wrong.

| in a cell | means |
| --- | --- |
| fail 2/7 | two of seven tests failed |
| n/a | the client lacks it, or it does not work there |
| pass, 1 n/a | one test is n/a, the rest passed |
| skipped | the toolchain was missing |
| not run | the run could not restart the broker |

`make compat-oracle` writes this page; `--details` splits the rows. To test your own broker: `ottla compat --bootstrap-server
HOST:PORT`.
"""

NOT_SERVED = """\
## Not in the tables

The same tests run on several brokers, in [a cluster](cluster.md#stock-clients-on-it) and [in KRaft](#in-a-kraft-cluster). ACLs
are not tested. Ottla does not serve:

- Streams groups (KIP-1071);
- tiered storage;
- `kafka-metadata-quorum`, and `kafka-features` for `metadata.version`, without a quorum.
"""

KIP_848 = """\
## Groups of KIP-848

Tests of groups that name no protocol run with both. Clients with the consumer protocol:

| client | setting |
| --- | --- |
| java 4.0 or newer, librdkafka 2.15 or newer | `group.protocol=consumer` |
| franz-go 1.22 | `kgo.ServerSideBalancer()` |
| platformatic 1.35 | `groupProtocol: "consumer"` |
| kafka-verifiable-consumer | `--group-protocol consumer` |
| kafka-console-consumer | `--command-property group.protocol=consumer` |

The others have one test, with both kinds of members. Known problems:

- While members join and leave, librdkafka 2.12 to 2.14 (crate rdkafka 0.39) reportedly stops reading for minutes, and fails
  commits with `STALE_MEMBER_EPOCH`.
- A static member of franz-go 1.22.2 leaves without its instance id. Its successor waits for the session's end.
- A group with a member of kafka-go or @platformatic/kafka stays classic, and refuses the consumer protocol with
  `GROUP_ID_NOT_FOUND`.
"""

KIP_932 = """\
## Share groups

Clients with share consumers (KIP-932):

| client | share consumer |
| --- | --- |
| java 4.4 | `KafkaShareConsumer` |
| franz-go 1.22 | `kgo.ShareGroup()` |
| confluent-kafka 2.16 | `ShareConsumer`; it cannot renew locks, and may exceed `max.poll.records` |
| Kafka's tools 4.3 | kafka-share-groups, share consumers of console, verifiable, perf-test |
"""

IN_KRAFT = """\
## In a KRaft cluster

The same tests ran in [a cluster of three Apache Kafka 4.3.1 nodes](kraft.md) with `transaction.version` 2. Apache Kafka's log
directories were cordoned (KIP-1066), so brokers of Ottla led and coordinated everything.

| client | passed | n/a |
| --- | --- | --- |
| confluent-kafka 2.16.1 | 106 | 1 |
| franz-go 1.22.2 | 107 | 0 |
| Spark 4.0.0 | 126 | 2 |
| aiokafka 0.14.0 | 99 | 8 |
| sarama 1.61.1 | 101 | 6 |
| kafka-go 0.4.51 | 84 | 26 |
| kafka-python 3.0.12 | 107 | 0 |
| Java's kafka-clients 4.4.0 | 104 | 3 |
| Kafka's tools, Streams, Connect 4.3.1 | 33 | 1 |
| frames on a socket | 203 | 0 |

One test of frames failed, because cordoned brokers take no partitions. Tests that restart brokers did not run. franz-go and Java
used transactions of version 2 (KIP-890).
"""

_TOO_OLD = (
    (
        "kafka-python 1.4.7 with `api_version=(0, 11)`",
        "it reads nothing, without an error",
        "no `api_version`, or `(0, 11, 0)`",
    ),
    ("the same with `(0, 10)`", "`KafkaConnectionError: socket disconnected`", "the same"),
    ("pykafka 2.8", "`SocketDisconnectedError`", "kafka-python, confluent-kafka, aiokafka"),
    ("kafka-node 5", "`Broker not available (socket closed)`", "kafkajs, platformatic"),
    ("kafka-rust 0.10, the crate `kafka`", "`failed to fill whole buffer`", "rdkafka, rskafka"),
    (
        "Java's kafka-clients 0.10",
        "`NetworkException`; it reads nothing",
        "2.1 or newer",
    ),
    (
        "librdkafka 0.11.6 and 1.0.1",
        "groups: `Required feature not supported by broker`",
        "a newer one",
    ),
    ("Burrow 1.2.1", "it cannot connect", "[`ottla spark lag`](lag.md)"),
    (
        "prometheus-kafka-consumer-group-exporter 0.5.5",
        "no group has an offset",
        "[`kafka_consumergroup_lag`](monitoring.md#metrics) of Ottla",
    ),
)
"""Clients, what their users see, and what works; as Markdown."""

TOO_OLD = f"""\
## Clients that are too old

As Apache Kafka 4, Ottla does not serve clients older than Kafka 2.1 (KIP-896):

| client | symptom | use instead |
| --- | --- | --- |
{"".join(f"| {' | '.join(row)} |{chr(10)}" for row in _TOO_OLD)}
The broker closes the connection, and logs a line for each address and kind of request:

    closing connection from 192.0.2.7:51312: FETCH version 3 is not served, only 4 to 18: the client or its settings are too old, …
"""


def page(reports: Sequence[Report]) -> str:
    """The page, as Markdown."""
    blocks = [INTRODUCTION, *(_tables(report) for report in reports)]
    if len(reports) == 2:
        blocks.append(_differences(*reports))
    blocks += [NOT_SERVED, KIP_848, KIP_932, IN_KRAFT, TOO_OLD]
    for outcome, title in (
        (record.FAIL, "Failed"),
        (record.SKIPPED, "Skipped"),
        (record.NOT_RUN, "Not run"),
    ):
        blocks += [_reasons(report, outcome, title) for report in reports if report.of(outcome)]
    blocks += [_not_applicable(reports), _clients(reports)]
    return "\n".join(filter(None, blocks))


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown, of cells that are plain text."""
    lines = [list(map(literal, head))]
    lines += [["---"] * len(lines[0]), *(list(map(literal, row)) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def literal(text: str) -> str:
    """Text that Markdown and HTML leave as it is, in a cell of a table, too."""
    for character in "\\`*_[]<>|":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())


def _code(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def _code_span(text: str) -> str:
    """For a cell of a table: commas in it do not look like those between it and others."""
    text = text.replace("`", "'").replace("|", "\\|")
    return f"`{' '.join(text.split())}`"


def _tables(report: Report) -> str:
    clients = report.clients()
    libraries = [name for name in clients if name in CLIENTS]
    others = [name for name in clients if name in programs.PROGRAMS]
    blocks = [f"## {literal(report.broker)}\n", _code(report.command)]
    blocks.append(f"On {report.date}, in {report.seconds} s: {report.summary()}.\n")
    blocks += [_cells(report, names) for names in (libraries, others) if names]
    return "\n".join(blocks)


def _cells(report: Report, clients: Sequence[str]) -> str:
    cells = report.cells()

    def text(cell: Cell | None) -> str:
        if cell is None:
            return ""
        return f"**{cell.text()}**" if cell.outcome in (record.FAIL, record.SKIPPED) else cell.text()

    rows = []
    for row in report.rows():
        found = [cells.get((client, row)) for client in clients]
        if any(found):
            rows.append((row, *map(text, found)))
    return table(("", *clients), rows).replace("\\*\\*", "**")


def _differences(first: Report, second: Report) -> str:
    """Tests that the two brokers answered in different ways."""
    outcomes = {result.test: result.outcome for result in second.results}
    lines = [
        f"- {literal(result.client)}, {literal(result.capability)} ({literal(result.test)}): "
        f"{result.outcome}, on {literal(second.broker)} {outcomes[result.test]}\n"
        for result in first.results
        if outcomes.get(result.test, result.outcome) != result.outcome
    ]
    text = "".join(lines) or "None: every test that ran on both had the same outcome.\n"
    return f"## Where {literal(first.broker)} and {literal(second.broker)} differ\n\n{text}"


def _reasons(report: Report, outcome: str, title: str) -> str:
    if outcome == record.FAIL:
        lines = [
            f"- {literal(result.client)}, {literal(result.capability)} ({literal(result.test)}): {literal(result.reason)}\n"
            for result in report.of(outcome)
        ]
    else:
        lines = [
            f"- {literal(client)}: {literal(reason)} ({tests} {'test' if tests == 1 else 'tests'})\n"
            for client, reason, tests in report.reasons(outcome)
        ]
    return f"## {title} on {literal(report.broker)}\n\n{''.join(lines)}"


def _not_applicable(reports: Sequence[Report]) -> str:
    """What clients lack, the same on every broker: a row for each reason of a client."""
    found = {
        (result.client, result.capability): result.reason
        for report in reports
        for result in report.of(record.NOT_APPLICABLE)
    }
    capabilities: dict[tuple[str, str], list[str]] = {}
    for (client, capability), reason in sorted(found.items()):
        capabilities.setdefault((client, reason), []).append(capability)
    if not capabilities:
        return ""
    head = table(("client", "capabilities", "why they are n/a"), ())
    rows = [
        f"| {literal(client)} | {', '.join(map(_code_span, lacking))} | {literal(reason)} |\n"
        for (client, reason), lacking in capabilities.items()
    ]
    return "## What clients do not offer\n\n" + head + "".join(rows)


def _clients(reports: Sequence[Report]) -> str:
    rows = []
    for name in programs.names():
        if not any(name in report.clients() for report in reports):
            continue
        versions = dict.fromkeys(report.versions.get(name, "") for report in reports)
        what = programs.PROGRAMS[name].what if name in programs.PROGRAMS else "client library"
        rows.append((name, what, ", ".join(filter(None, versions))))
    return "## Clients\n\n" + table(("client", "kind", "version"), rows)


def main() -> None:
    """From the files that the arguments name."""
    reports: dict[str, Report] = {}
    for name in sys.argv[1:]:
        report = record.from_json(json.loads(Path(name).read_text(encoding="utf-8")))
        known = reports.get(report.broker)
        reports[report.broker] = record.together(known, report) if known else report
    sys.stdout.write(page(list(reports.values())))


if __name__ == "__main__":
    main()
