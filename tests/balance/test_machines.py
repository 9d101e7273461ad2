"""Machines in the place of racks."""

from __future__ import annotations

from ottla.balance.machines import racks_or_machines


def test_machines_are_racks_where_no_rack_is_named() -> None:
    assert racks_or_machines({1: (None, "x"), 2: (None, "x"), 3: (None, "y")}) == {1: "x", 2: "x", 3: "y"}


def test_racks_of_a_user_are_kept() -> None:
    assert racks_or_machines({1: ("a", "x"), 2: ("a", "x"), 3: (None, "y")}) == {1: "a", 2: "a", 3: None}


def test_one_broker_on_each_machine_or_one_machine() -> None:
    assert racks_or_machines({1: (None, "x"), 2: (None, "y")}) == {1: None, 2: None}
    assert racks_or_machines({1: (None, "x"), 2: (None, "x")}) == {1: None, 2: None}
