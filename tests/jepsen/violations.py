"""What a history can be found to violate."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """What is wrong; the worst first."""

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
    """Long after the last fault something does not go on that should. Found by the run, not in its history."""
    PROCESS_ENDED = "process-ended"
    """A broker has ended without being told to, and not for a disk or descriptors. Found by the run, too."""


class Violation(NamedTuple):
    """One of them, and what of the history shows it."""

    kind: Kind
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"
