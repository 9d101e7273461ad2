"""What ``ottla doctor`` says of groups that were read once or twice."""

from __future__ import annotations

import pytest

from ottla.cli.tools.doctor.diagnosis import DiagnosisLevel
from ottla.cli.tools.doctor.group_checks import of_groups
from ottla.view.rows import GroupRow


def group(lag: int | None, committed: int = 1000, *, members: int = 1, lost: int = 0, unknown: int = 0) -> GroupRow:
    return GroupRow(
        "billing", "classic", "Stable", "consumer", "range", 1, None, members, 1, 1, lag, lag, unknown, lost, committed
    )


def sentences(before: GroupRow | None, now: GroupRow) -> list[tuple[DiagnosisLevel, str]]:
    first = None if before is None else {before.group_id: before}
    return [(line.level, line.what) for line in of_groups(first, {now.group_id: now}, 0, 60.0)]


@pytest.mark.parametrize(
    ("before", "now", "grows"),
    [
        (group(0), group(100), True),
        (group(0), group(99), False),
        (group(50), group(1000, committed=9000), True),  # 950 of 8950 that came
        (group(50), group(500, committed=9000), False),  # it reads nearly all that comes
        (group(None), group(1000), False),
        (group(900), group(0), False),
    ],
)
def test_lag_grows_by_a_tenth_of_what_came(before: GroupRow, now: GroupRow, grows: bool) -> None:
    has_grown = (DiagnosisLevel.WARNING, "The lag of 1 group has grown in 60 s: billing")
    assert (has_grown in sentences(before, now)) == grows


def test_a_group_without_members_is_not_told_of_twice() -> None:
    assert sentences(group(10, members=0), group(900, members=0)) == [
        (DiagnosisLevel.WARNING, "1 group has lag and no member: billing")
    ]


def test_records_that_went_unread_and_ends_that_are_not_known() -> None:
    assert sentences(None, group(0, lost=1, unknown=2)) == [
        (DiagnosisLevel.WARNING, "1 group did not read records before they were deleted: billing"),
        (DiagnosisLevel.UNKNOWN, "The ends of 2 partitions that groups read are not known"),
    ]


def test_one_look_does_not_tell_whether_lag_grows() -> None:
    assert [level for level, _ in sentences(None, group(5))] == [DiagnosisLevel.OK, DiagnosisLevel.NOTE]
    assert [level for level, _ in sentences(group(5), group(5))] == [DiagnosisLevel.OK]
