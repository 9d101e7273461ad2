"""What a share coordinator has to keep, told from the requests it has taken; it is compared with what the coordinator keeps.

It knows no records and no batches: of each offset it has the highest delivery count, and of equal counts the highest state. A
later coordinator has to keep what the requests say whose records it has (``end``), however its log was shortened.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.share_coordinator.share_group_offset import ShareGroupOffset
from ottla.share_coordinator.state import NOT_BEGUN, SharePartitionKey, StateBatch

_TERMINAL = (2, 4)


class Request(NamedTuple):
    """A request that was taken. A field that it does not have is None."""

    end: int
    """The offset after its record."""
    key: SharePartitionKey
    state_epoch: int | None = None
    leader_epoch: int | None = None
    start_offset: int = NOT_BEGUN
    batches: Sequence[StateBatch] = ()

    @property
    def is_write(self) -> bool:
        return self.state_epoch is not None and self.leader_epoch is not None


@dataclass
class Kept:
    """One share partition."""

    state_epoch: int
    leader_epoch: int = 0
    start_offset: int = NOT_BEGUN
    epoch_before: int = 0
    """The highest leader epoch before the group began anew. A read of that leader leaves no record (as in Kafka), so once the
    records before are deleted, no later coordinator knows of it."""
    offsets: dict[int, tuple[int, int]] = field(default_factory=dict)
    """State and delivery count by offset, from the start offset on."""
    ended: set[int] = field(default_factory=set)
    """The offsets that were acknowledged or archived once, under this state epoch."""

    @property
    def ended_count(self) -> int:
        """How many from the start offset on are not to be delivered again."""
        return sum(state in _TERMINAL for state, _ in self.offsets.values())

    def write(self, request: Request) -> str:
        """Take what a leader writes. Why it should have been refused, or nothing."""
        if request.state_epoch != self.state_epoch:
            return f"a write under state epoch {request.state_epoch} is taken, not {self.state_epoch}"
        if request.start_offset < self.start_offset:
            return f"the start offset goes back from {self.start_offset} to {request.start_offset}"
        self.start_offset = request.start_offset
        for first, last, state, count in request.batches:
            for offset in range(first, last + 1):
                if (count, state) >= self.offsets.get(offset, (0, 0))[::-1]:
                    self.offsets[offset] = state, count
            if state in _TERMINAL:
                self.ended.update(range(first, last + 1))
        self.offsets = {offset: each for offset, each in self.offsets.items() if offset >= self.start_offset}
        return ""

    def difference(self, known: ShareGroupOffset | None) -> str:
        """What the coordinator keeps otherwise."""
        if known is None:
            return "nothing is kept"
        offsets: dict[int, tuple[int, int]] = {}
        for first, last, state, count in known.batches:
            offsets.update(dict.fromkeys(range(first, last + 1), (state, count)))
        wanted, found = (self.state_epoch, self.start_offset), (known.state_epoch, known.start_offset)
        if wanted != found:
            return f"state epoch and start offset are {found}, not {wanted}"
        if self.leader_epoch > known.highest_leader_epoch:
            return f"leader epoch {self.leader_epoch} is forgotten, {known.highest_leader_epoch} is known"
        if offsets != self.offsets:
            return f"{known.batches} are kept, and not {self.offsets}"
        return ""


class KeptStates:
    """All of them, as one coordinator has to keep them."""

    def __init__(self, requests: Iterable[Request] = ()) -> None:
        self.requests: list[Request] = []
        self.states: dict[SharePartitionKey, Kept] = {}
        for request in requests:
            self.take(request)

    def take(self, request: Request) -> str:
        """The coordinator has taken ``request``. Why it should have refused it, or nothing."""
        self.requests.append(request)
        kept = self.states.get(request.key)
        if request.leader_epoch is None:
            assert request.state_epoch is not None
            if kept is not None and request.state_epoch < kept.state_epoch:
                return f"state epoch {request.state_epoch} follows {kept.state_epoch}"
            before = 0 if kept is None else max(kept.leader_epoch, kept.epoch_before)
            self.states[request.key] = Kept(request.state_epoch, start_offset=request.start_offset, epoch_before=before)
            return ""
        if kept is None:
            return "what is not kept is read, or written"
        if request.leader_epoch < kept.leader_epoch:
            return f"a request of leader epoch {request.leader_epoch} is taken, {kept.leader_epoch} has read"
        if request.is_write:
            return kept.write(request)
        if request.leader_epoch > kept.epoch_before:
            kept.leader_epoch = request.leader_epoch
        return ""

    def up_to(self, end: int) -> KeptStates:
        """As they are after the log has lost what is above ``end``."""
        return KeptStates(request for request in self.requests if request.end <= end)
