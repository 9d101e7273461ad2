"""The protocol by which unformatted nodes form one cluster, as a state machine of promises and decisions.

The first node of the list coordinates. It learns the directory ids of all the others, and proposes a cluster: an id, and the
directories of its first voters. Each node promises that, durably, before it says so. When all have promised, the coordinator
decides; who hears of the decision decides the same. This is a two-phase commit in which every node has to agree: where one is
missing no cluster is formed, so none is formed twice.

What makes it safe:

- A node answers by what it has on disk. It has one promise, and after a decision it never promises again.
- A promise gives way to a proposal of a higher ballot only. The coordinator makes another proposal only while it has not
  decided, and when it knows the present promise of every node, so that its ballot is the highest there is. It does so where a
  node has lost its disk: the directory that was proposed for that node is not its own any more.
- A proposal names the directory of every node. One with another directory does not promise it, be it late or for a node that
  was wiped.
- The word of a formed cluster, other than the one promised, counts from a node whose directory the promise names: such a node
  will never promise, so what was promised can never be decided. Another node's word may be from before its disk was lost.
- A coordinator that has lost its disk may have decided before. Where a majority of the first voters of one cluster have
  promised it, it takes that one. With fewer of them left that cluster could never elect a leader.

A node that finds a formed cluster joins it. It is one of its first voters only by the directory id that it promised with: a
node
with a wiped disk has another one, and is not a voter.

Pure: no clock, no I/O. The caller writes ``next_record`` to the disk and hands it to ``persisted`` before anything else is
said.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...base.addresses import join_host_port

COORDINATOR = 1
"""The number of the node that proposes: the first of the list."""


class ListedNode(NamedTuple):
    """Where clients reach a node of the list. Its controller listens at the next port."""

    host: str
    port: int

    def __str__(self) -> str:
        return join_host_port(self.host, self.port)


NodeList = tuple[ListedNode, ...]


def shown_list(nodes: Iterable[ListedNode]) -> str:
    return ",".join(map(str, nodes))


@dataclass(frozen=True, slots=True)
class FormationProposal:
    """A cluster that may be formed."""

    ballot: int
    """Positive; of two proposals the one with the higher ballot is the later one."""
    cluster_id: str
    created_ms: int
    """The time in the first records, so that they are the same on every node."""
    levels: Mapping[str, int]
    """The level of each feature."""
    directory_ids: tuple[bytes, ...]
    """Those of the first voters, in the order of the list."""


@dataclass(frozen=True, slots=True)
class FormationRecord:
    """What a node has on disk until it is formatted."""

    directory_id: bytes
    """Made at the first start. It becomes the id of the directory with the metadata log."""
    node_id: int = 0
    """The number with which the node has promised or decided."""
    nodes: NodeList = ()
    """The list, likewise."""
    promise: FormationProposal | None = None
    cluster_id: str | None = None
    """The decision: the node formats itself for this cluster, as one of its first voters if it is the one promised."""

    @property
    def is_first_voter(self) -> bool:
        return self.promise is not None and self.promise.cluster_id == self.cluster_id


@dataclass(frozen=True, slots=True)
class FormationStatement:
    """What a node tells another one of itself."""

    node_id: int
    nodes: NodeList
    """Its list now; empty where it is formatted."""
    directory_id: bytes
    promise: FormationProposal | None = None
    cluster_id: str | None = None
    """Where the node is formatted or has decided: for this cluster."""


class FormationRefusedError(Exception):
    """The node cannot go on as it was told to. ``str()`` is one line for people."""


NewProposal = Callable[[int, tuple[bytes, ...]], FormationProposal]
"""Makes a proposal with a cluster id of its own, of this ballot and these directories."""


class FormationNode:
    """One unformatted node."""

    def __init__(
        self,
        node_id: int,
        nodes: Sequence[ListedNode],
        record: FormationRecord,
        new_proposal: NewProposal,
        has_levels: Callable[[Mapping[str, int]], bool] = lambda levels: True,
    ) -> None:
        """``has_levels``: whether this node supports these levels of features. Raises FormationRefusedError."""
        _check_start(node_id, tuple(nodes), record)
        self.node_id = node_id
        """The node's place in the list, counted from 1; one beyond the list joins without a vote."""
        self.nodes: NodeList = tuple(nodes)
        self.record = record
        self.complaints: dict[int, str] = {}
        """By place in the list, why that node does not take part."""
        self._new_proposal = new_proposal
        self._has_levels = has_levels
        self._heard: dict[int, FormationStatement] = {}
        """Responses of unformatted nodes, by place: each to a request of this life."""
        self._formed: dict[int, FormationStatement] = {}
        """What nodes of formed clusters have said, by place."""
        self._proposed: FormationProposal | None = None

    # --- what is said and heard ---------------------------------------------------------------------------------------

    @property
    def statement(self) -> FormationStatement:
        record = self.record
        return FormationStatement(self.node_id, self.nodes, record.directory_id, record.promise, record.cluster_id)

    @property
    def is_listed(self) -> bool:
        return self.node_id <= len(self.nodes)

    @property
    def awaited(self) -> list[int]:
        """The places of the nodes that have not been heard of yet as part of this formation."""
        others = (place for place in range(1, len(self.nodes) + 1) if place != self.node_id)
        return [place for place in others if place not in self._heard and place not in self._formed]

    def handle_request(self, said: FormationStatement) -> None:
        """Another node tells of itself, maybe late: by now it may be a different one.

        Only a proposal is taken from it, and a decision for what was promised: both hold whenever they come.
        """
        if not self.is_listed or said.nodes != self.nodes or not 1 <= said.node_id <= len(self.nodes):
            return
        if said.node_id == self.node_id:
            if said.directory_id != self.record.directory_id:
                self.complaints[self.node_id] = f"another node says that it is node {self.node_id}"
            return
        self._note_proposal(said)
        promise = self.record.promise
        if promise is not None and said.cluster_id == promise.cluster_id:
            self._formed[said.node_id] = said

    def handle_response(self, place: int, said: FormationStatement) -> None:
        """The node at ``place`` of the list responds to a request of this life."""
        complaint = self._complaint_of(place, said)
        # The newest response alone counts: a node that has lost its disk does not hold to what it said before.
        self._heard.pop(place, None)
        self._formed.pop(place, None)
        if complaint is not None:
            self.complaints[place] = complaint
            return
        self.complaints.pop(place, None)
        if said.cluster_id is not None:
            self._formed[place] = said
            return
        self._heard[place] = said
        if self.is_listed:
            self._note_proposal(said)

    def _complaint_of(self, place: int, said: FormationStatement) -> str | None:
        if self.is_listed and said.node_id != place:
            return f"it is node {said.node_id}, and the list has it as node {place}"
        if said.node_id == self.node_id:
            return f"it says that it is node {self.node_id}, which this one is"
        if said.cluster_id is None and said.nodes != self.nodes:
            theirs, ours = shown_list(said.nodes), shown_list(self.nodes)
            return f"it wants to form a cluster of {theirs}, and this node one of {ours}: start all with one list"
        return None

    def _note_proposal(self, said: FormationStatement) -> None:
        proposal = said.promise
        if said.node_id != COORDINATOR or proposal is None or not self._is_for_own_directory(proposal):
            return
        if self._proposed is None or proposal.ballot > self._proposed.ballot:
            self._proposed = proposal

    # --- what follows -------------------------------------------------------------------------------------------------

    def next_record(self) -> FormationRecord | None:
        """What is to be on disk before anything else is said; None where there is nothing to do."""
        record = self.record
        if record.cluster_id is not None:
            return None
        formed = self._formed_cluster()
        if formed is not None:
            return self._decided(formed)
        if not self.is_listed:
            return None
        if self.node_id == COORDINATOR:
            return self._next_of_coordinator()
        proposal = self._proposed
        if proposal is None or not self._may_promise(proposal):
            return None
        return self._promised(proposal)

    def _promised(self, proposal: FormationProposal) -> FormationRecord:
        return dataclasses.replace(self.record, node_id=self.node_id, nodes=self.nodes, promise=proposal)

    def _decided(self, cluster_id: str) -> FormationRecord:
        return dataclasses.replace(self.record, node_id=self.node_id, nodes=self.nodes, cluster_id=cluster_id)

    def persisted(self, record: FormationRecord) -> None:
        """``next_record`` is on disk."""
        self.record = record

    def _formed_cluster(self) -> str | None:
        """The formed cluster that this node is to be part of."""
        found = {said.cluster_id: place for place, said in self._formed.items() if self._can_trust(place, said)}
        if len(found) < 2:
            return next(iter(found), None)
        for cluster_id, place in found.items():
            self.complaints[place] = f"it is of cluster {cluster_id}, and other nodes of the list are of another one"
        return None

    def _can_trust(self, place: int, said: FormationStatement) -> bool:
        promise = self.record.promise
        # Only the coordinator decides: when it joins another cluster, nobody can decide what was promised.
        if promise is None or self.node_id == COORDINATOR or said.cluster_id == promise.cluster_id:
            return True
        return _names(promise, place, said.directory_id)

    def _may_promise(self, proposal: FormationProposal) -> bool:
        if not self._has_levels(proposal.levels):
            self.complaints[COORDINATOR] = "it proposes features that this node lacks: have all nodes run one version"
            return False
        return _is_later(proposal, self.record.promise)

    def _is_for_own_directory(self, proposal: FormationProposal) -> bool:
        return len(proposal.directory_ids) == len(self.nodes) and _names(
            proposal, self.node_id, self.record.directory_id
        )

    def _next_of_coordinator(self) -> FormationRecord | None:
        record, promise = self.record, self.record.promise
        others = range(COORDINATOR + 1, len(self.nodes) + 1)
        if any(place not in self._heard for place in others):
            return None
        heard = [self._heard[place] for place in others]
        if promise is None and (kept := self._kept_promise(heard)) is not None:
            return self._decided(kept.cluster_id)
        if promise is None or any(_is_outdated(promise, said) for said in heard):
            promised = [said.promise.ballot for said in heard if said.promise is not None]
            ballot = 1 + max([*promised, 0 if promise is None else promise.ballot])
            directories = (record.directory_id, *(said.directory_id for said in heard))
            return self._promised(self._new_proposal(ballot, directories))
        if all(said.promise == promise for said in heard):
            return self._decided(promise.cluster_id)
        return None

    def _kept_promise(self, heard: Sequence[FormationStatement]) -> FormationProposal | None:
        """The promise that a majority of its first voters has; this node, which lacks it, has lost its disk."""
        for said in heard:
            promise = said.promise
            if promise is not None:
                voters = [
                    each
                    for each in heard
                    if each.promise == promise and _names(promise, each.node_id, each.directory_id)
                ]
                if 2 * len(voters) > len(self.nodes):
                    return promise
        return None


def _check_start(node_id: int, nodes: NodeList, record: FormationRecord) -> None:
    """Whether a node may go on with this number and list. Raises FormationRefusedError."""
    if record.promise is None and record.cluster_id is None:
        return
    if record.node_id != node_id:
        raise FormationRefusedError(
            f"this node has begun to become node {record.node_id} of {shown_list(record.nodes)}, and is now started as node "
            f"{node_id}: start it with its first number, or empty its log directories"
        )
    if record.cluster_id is None and record.nodes != nodes:
        raise FormationRefusedError(
            f"this node has promised to form a cluster of {shown_list(record.nodes)}, and is now started with "
            f"{shown_list(nodes)}. Start it with the first list, or empty its log directories if no node of that list is "
            "in a cluster"
        )


def _names(proposal: FormationProposal, place: int, directory_id: bytes) -> bool:
    """Whether the voter at this place has this directory."""
    return 0 < place <= len(proposal.directory_ids) and proposal.directory_ids[place - 1] == directory_id


def _is_later(proposal: FormationProposal, promise: FormationProposal | None) -> bool:
    return promise is None or proposal.ballot > promise.ballot


def _is_outdated(promise: FormationProposal, said: FormationStatement) -> bool:
    """Whether a node can no longer promise this: its disk is another one, or it has promised something later."""
    if not _names(promise, said.node_id, said.directory_id):
        return True
    return said.promise is not None and said.promise != promise and not _is_later(promise, said.promise)
