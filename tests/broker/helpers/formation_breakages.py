"""Rules of a formation, each broken on purpose: the checkers have to find it out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from ottla.broker.formation import protocol
from ottla.broker.formation.protocol import FormationNode, FormationRecord, FormationStatement
from ottla.tests.broker.helpers.formation_world import FormationHost, FormationWorld

FormationBreakage = Callable[[pytest.MonkeyPatch], None]


def no_ballots(patch: pytest.MonkeyPatch) -> None:
    """A promise gives way to any other proposal, also to one that is late."""
    patch.setattr(protocol, "_is_later", lambda proposal, promise: proposal != promise)
    note = FormationNode._note_proposal

    def note_last(self: FormationNode, said: FormationStatement) -> None:
        self._proposed = None
        note(self, said)

    patch.setattr(FormationNode, "_note_proposal", note_last)


def promises_for_any_directory(patch: pytest.MonkeyPatch) -> None:
    """A node with another disk promises what was proposed to the one that it was."""
    patch.setattr(FormationNode, "_is_for_own_directory", lambda self, proposal: True)
    patch.setattr(protocol, "_is_outdated", lambda promise, said: False)


def _decides_with(patch: pytest.MonkeyPatch, is_enough: Callable[[int, int], bool]) -> None:
    """``is_enough``: of the number of nodes that are there, and of those in the list."""

    def next_of_coordinator(self: FormationNode) -> FormationRecord | None:
        others = range(2, len(self.nodes) + 1)
        if not is_enough(1 + len(self._heard), len(self.nodes)):
            return None
        promise = self.record.promise
        if promise is None:
            known = [self._heard[place].directory_id if place in self._heard else bytes(16) for place in others]
            return self._promised(self._new_proposal(1, (self.record.directory_id, *known)))
        promised = 1 + sum(said.promise == promise for said in self._heard.values())
        return self._decided(promise.cluster_id) if is_enough(promised, len(self.nodes)) else None

    patch.setattr(FormationNode, "_next_of_coordinator", next_of_coordinator)


def a_majority_decides(patch: pytest.MonkeyPatch) -> None:
    """The coordinator decides where a majority has promised."""
    _decides_with(patch, lambda count, of: 2 * count > of)


def a_lone_node_decides(patch: pytest.MonkeyPatch) -> None:
    """The first node does not wait for the others."""
    _decides_with(patch, lambda count, of: True)


def lists_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    """Nodes with different lists form a cluster."""
    complain, hear = FormationNode._complaint_of, FormationNode.handle_request

    def own(self: FormationNode, said: FormationStatement) -> FormationStatement:
        return dataclasses.replace(said, nodes=self.nodes)

    patch.setattr(FormationNode, "_complaint_of", lambda self, place, said: complain(self, place, own(self, said)))
    patch.setattr(FormationNode, "handle_request", lambda self, said: hear(self, own(self, said)))


def promises_are_not_on_disk(patch: pytest.MonkeyPatch) -> None:
    """A node says that it has promised, and has it in memory only."""
    save = FormationWorld.save

    def save_decisions(self: FormationWorld, host: FormationHost, record: FormationRecord) -> None:
        if record.cluster_id is not None or host.node_id == protocol.COORDINATOR or host.record.promise is None:
            save(self, host, record)

    patch.setattr(FormationWorld, "save", save_decisions)


def any_word_of_a_cluster_counts(patch: pytest.MonkeyPatch) -> None:
    """A node joins the cluster of a node whose disk is not the one that was promised with."""
    patch.setattr(FormationNode, "_can_trust", lambda self, place, said: True)
    hear = FormationNode.handle_request

    def hear_all(self: FormationNode, said: FormationStatement) -> None:
        hear(self, said)
        if said.cluster_id is not None and said.nodes == self.nodes and said.node_id != self.node_id:
            self._formed[said.node_id] = said

    patch.setattr(FormationNode, "handle_request", hear_all)


def a_lost_coordinator_begins_anew(patch: pytest.MonkeyPatch) -> None:
    """A first node with a wiped disk proposes another cluster, whatever it has decided before."""
    patch.setattr(FormationNode, "_kept_promise", lambda self, heard: None)


FORMATION_BREAKAGES: dict[str, FormationBreakage] = {
    breakage.__name__: breakage
    for breakage in (
        no_ballots,
        promises_for_any_directory,
        a_majority_decides,
        a_lone_node_decides,
        lists_are_not_compared,
        promises_are_not_on_disk,
        any_word_of_a_cluster_counts,
        a_lost_coordinator_begins_anew,
    )
}
