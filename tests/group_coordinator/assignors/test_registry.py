"""The assignor that a group uses."""

from __future__ import annotations

import pytest

from ottla.group_coordinator.assignors.registry import assignor_of_group, supported


def test_the_default_is_the_first() -> None:
    assert supported() == ("uniform", "range")


@pytest.mark.parametrize(
    ("preferred", "configured", "used"),
    [
        ("range", ("uniform", "range"), "range"),
        (None, ("uniform", "range"), "uniform"),
        (None, ("range",), "range"),
        ("uniform", ("range",), "range"),
    ],
)
def test_the_members_choice_or_the_first_that_is_configured(
    preferred: str | None, configured: tuple[str, ...], used: str
) -> None:
    assert assignor_of_group(preferred, configured).name == used
