"""Burrow's rules: the status of a consumer by its last commits in a partition, without a threshold.

In this order, for a partition whose lag is not zero now:

STOPPED   the last commit is longer ago than the window of commits is long, and the group had not caught up lately
REWIND    a commit went back, and no later one has reached the offset before it
OK        the lag was zero at one of the commits
STALLED   all commits have the same offset
WARNING   the lag never fell from one commit to the next
OK        otherwise, and whenever the lag is zero
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple


class LagStatus(enum.IntEnum):
    """The status of a partition, the worst last; a group has that of its worst partition."""

    OK = 1
    WARNING = 2
    STOPPED = 3
    STALLED = 4
    REWIND = 5


class Commit(NamedTuple):
    """A committed offset, the time of the commit, and the lag at that time."""

    offset: int
    timestamp_ms: int
    lag: int


def judge(commits: Sequence[Commit], lag: int, now_ms: int, *, was_at_end_lately: bool) -> LagStatus:
    """The status of a partition with this window of commits, oldest first, and this lag now."""
    if lag == 0 or not commits:
        return LagStatus.OK
    first, last = commits[0].timestamp_ms, commits[-1].timestamp_ms
    if now_ms - last > last - first and not was_at_end_lately:
        return LagStatus.STOPPED
    if _is_rewound(commits):
        return LagStatus.REWIND
    if any(commit.lag == 0 for commit in commits):
        return LagStatus.OK
    if all(commit.offset == commits[0].offset for commit in commits):
        return LagStatus.STALLED
    if all(later.lag >= earlier.lag for earlier, later in pairwise(commits)):
        return LagStatus.WARNING
    return LagStatus.OK


def _is_rewound(commits: Sequence[Commit]) -> bool:
    """Whether the first commit that went back has not been made up for by a later one."""
    for index, (earlier, later) in enumerate(pairwise(commits), 1):
        if later.offset < earlier.offset:
            return all(commit.offset < earlier.offset for commit in commits[index:])
    return False
