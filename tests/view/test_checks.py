"""Checks have an outcome of bounded size, and limits that what is usual does not reach."""

from __future__ import annotations

import pytest

from ottla.view.checks import GroupChecks, HeldPartition, PartitionChecks, answers, disks, held_back, refused_producers
from ottla.view.disk_space import DiskRow, DiskTrends
from ottla.view.findings import MOST_NAMED, CheckRow, HealthReport, Severity, Worst, all_made
from ottla.view.lag_history import LagHistory
from ottla.view.pace import Pace
from ottla.view.rows import NO_RATES, ErrorRow, GroupRow, TopicRow

GIB = 1 << 30
MINUTE_MS = 60_000
NOW_MS = 1_000 * MINUTE_MS


def topic(name: str, under_replicated: int = 0, offline: int = 0) -> TopicRow:
    counts = 10, 3, under_replicated, offline, 10, 10
    return TopicRow(name, False, *counts, 0, 0, NO_RATES, None, None, None, None, None)


def test_thousands_of_troubles_are_two_lines() -> None:
    checks = PartitionChecks()
    for number in range(9_000):
        checks.add(topic(f"topic-{number:04}", under_replicated=1 + number % 7, offline=number == 4711))
    check, found = checks.outcome()
    assert check.what == "the leaders and in-sync replicas of 90000 partitions"
    assert [(each.kind, each.what, each.count, len(each.subjects)) for each in found] == [
        ("offline", "1 partition has no leader", 1, 1),
        ("under-replicated", "35995 partitions have fewer replicas in sync than there should be", 9_000, MOST_NAMED),
    ]
    assert [each.key for each in found[1].subjects] == ["topic-0006", "topic-0013", "topic-0020"]


async def test_thousands_of_groups_are_a_line_for_each_kind() -> None:
    lags = LagHistory()
    rows = [
        GroupRow(f"g-{number:04}", "classic", "Empty", "", "", 1, None, 0, 1, 1, 10 + number, 10, 0, number % 2, 5)
        for number in range(5_000)
    ]
    for minute in range(3):
        await lags.note(NOW_MS + minute * MINUTE_MS, rows, Pace(lambda: 0.0))
    checks = GroupChecks(lags, NOW_MS + 2 * MINUTE_MS)
    for row in rows:
        checks.add(row)
    report = HealthReport()
    for outcome in checks.outcomes():
        report.add(*outcome)
    assert [(each.what, each.count) for each in report.findings] == [
        ("2500 groups did not read records before they were deleted", 2_500),
        ("5000 groups have lag and no member", 5_000),
    ]
    assert [each.key for each in report.findings[1].subjects] == ["g-4999", "g-4998", "g-4997"]
    assert report.findings[1].since_ms == NOW_MS
    assert [each.why_not for each in report.checks if not each.is_made] == [
        "it takes 5 min, and groups have been watched for 2 min"
    ]


def test_groups_whose_ends_are_not_known_were_not_looked_at_completely() -> None:
    checks = GroupChecks(LagHistory(), NOW_MS)
    checks.add(GroupRow("g", "classic", "Empty", "", "", 1, None, 0, 1, 3, 0, 0, 2, 0, 5))
    (check, found), *_ = checks.outcomes()
    assert check == CheckRow("what 1 group has committed in 1 partition", "the ends of 2 partitions are not known")
    assert found == []
    assert all(not each.is_made for each, _ in checks.outcomes("groups were not read yet"))


def test_green_needs_checks_and_each_of_them() -> None:
    assert not all_made([])
    assert all_made([CheckRow("this"), CheckRow("that")])
    assert not all_made([CheckRow("this"), CheckRow("that", "it does not answer")])


def test_the_largest_are_named_and_of_equals_the_first() -> None:
    worst = Worst(2)
    for size, name in ((1, "a"), (3, "b"), (2, "c"), (3, "d"), (3, "e")):
        worst.add(size, name)
    assert (worst.count, worst.names()) == (5, ["b", "d"])


def disk(total: int, usable: int | None, failure: str = "", path: str = "/data") -> DiskRow:
    return DiskRow(1, path, total * GIB, None if usable is None else usable * GIB, failure)


@pytest.mark.parametrize(
    ("row", "severity"),
    [
        (disk(500, 60), None),
        (disk(500, 45), Severity.WARNING),
        (disk(500, 10), Severity.PROBLEM),
        (disk(10_000, 400), None),
        (disk(10_000, 90), Severity.WARNING),
        (disk(10_000, 19), Severity.PROBLEM),
        (disk(0, 0), None),
    ],
)
def test_a_disk_is_nearly_full_by_its_share_and_by_bytes(row: DiskRow, severity: Severity | None) -> None:
    check, found = disks([row], "")
    assert check.is_made
    assert [each.severity for each in found] == ([] if severity is None else [severity])


def test_a_disk_that_tells_nothing_is_not_looked_at() -> None:
    check, found = disks([disk(500, 400), disk(0, None, path="/old")], " of this broker")
    assert found == []
    assert check == CheckRow("2 log directories of this broker", "1 of them tells no free space")


def test_how_soon_a_disk_is_full_takes_ten_minutes_to_tell() -> None:
    trends = DiskTrends()
    for minute in range(60):
        (row,) = trends.note(NOW_MS + minute * MINUTE_MS, [disk(1000, 500 - minute)])
        assert (row.full_in_ms is None) == (minute < 10)
    assert row.full_in_ms == pytest.approx(441 * MINUTE_MS, rel=0.01)
    assert disks([row], "")[1] == [], "in more than six hours"
    (row,) = trends.note(NOW_MS + 60 * MINUTE_MS, [disk(1000, 300)])
    (found,) = disks([row], "")[1]
    assert (found.kind, found.severity) == ("filling disk", Severity.WARNING)
    (row,) = trends.note(NOW_MS + 61 * MINUTE_MS, [disk(1000, 800)])
    assert row.full_in_ms is None, "records were deleted"


def error(client_id: str, error: str, ago_ms: int, api: str = "Produce") -> ErrorRow:
    return ErrorRow(api, error, client_id, 1, NOW_MS - ago_ms, "")


def test_who_is_refused() -> None:
    rows = [
        error("shop", "TOPIC_AUTHORIZATION_FAILED", 1000),
        error("shop", "MESSAGE_TOO_LARGE", 2000),
        error("", "PRODUCER_FENCED", 3000, "InitProducerId"),
        error("moved", "NOT_LEADER_OR_FOLLOWER", 10),
        error("before", "MESSAGE_TOO_LARGE", 6 * MINUTE_MS),
        error("reader", "TOPIC_AUTHORIZATION_FAILED", 10, "Fetch"),
    ]
    check, (found,) = refused_producers(rows, NOW_MS)
    assert check.is_made
    assert found.what == "2 producers were refused in the last 5 minutes"
    assert [each.name for each in found.subjects] == [
        "shop (TOPIC_AUTHORIZATION_FAILED)",
        "without a client id (PRODUCER_FENCED)",
    ]
    assert refused_producers(rows[3:], NOW_MS)[1] == []


def test_how_long_a_transaction_may_hold_back_consumers() -> None:
    held = [HeldPartition("t", number, held_ms) for number, held_ms in enumerate((MINUTE_MS, 3 * MINUTE_MS))]
    _, (found,) = held_back(held, NOW_MS, "2 partitions")
    assert (found.severity, found.count, found.since_ms) == (Severity.WARNING, 1, NOW_MS - 3 * MINUTE_MS)
    _, (found,) = held_back([*held, HeldPartition("u", 0, 15 * MINUTE_MS)], NOW_MS, "3 partitions")
    assert (found.severity, found.count) == (Severity.PROBLEM, 2)
    assert [each.name for each in found.subjects] == ["u-0", "t-1"]


def test_many_silent_brokers_are_one_line() -> None:
    _, found = answers(200, dict.fromkeys(range(7, 90), "connection refused"), 60)
    assert [(each.what, each.count) for each in found] == [
        ("83 brokers have not answered all requests in the last 60 seconds", 83)
    ]
    _, (one,) = answers(3, {2: "connection refused"}, 60)
    assert one.what == "Broker 2 has not answered all requests in the last 60 seconds: connection refused"
