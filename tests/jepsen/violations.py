"""The violations that can be found in a history."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """The kinds of violations, the worst first."""

    LOST_WRITE = "lost-write"
    UNSEEN = "unseen"
    DUPLICATE = "duplicate"
    INCONSISTENT_OFFSET = "inconsistent-offset"
    PHANTOM = "phantom"
    ABORTED_READ = "aborted-read"
    PRECOMMITTED_READ = "precommitted-read"
    TORN_TRANSACTION = "torn-transaction"
    PROCESSED_TWICE = "processed-twice"
    UNPROCESSED = "unprocessed"
    GROUP_SKIP = "group-skip"
    POLL_SKIP = "poll-skip"
    INTERNAL_POLL_SKIP = "internal-poll-skip"
    NONMONOTONIC_POLL = "nonmonotonic-poll"
    INTERNAL_NONMONOTONIC_POLL = "internal-nonmonotonic-poll"
    NONMONOTONIC_SEND = "nonmonotonic-send"
    INTERNAL_NONMONOTONIC_SEND = "internal-nonmonotonic-send"
    TWO_OWNERS = "two-owners"
    NOT_HEALED = "not-healed"
    """Long after the last fault something still does not work. Found by the run, not in its history."""
    PROCESS_ENDED = "process-ended"
    """A broker has ended by itself, and not because of its disk or descriptors. Found by the run, too."""


class Violation(NamedTuple):
    """A violation, and its evidence in the history."""

    kind: Kind
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"
