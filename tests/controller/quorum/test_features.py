"""The levels that a new cluster begins with."""

from __future__ import annotations

import pytest

from ottla.controller.quorum.features import FeatureError, initial_levels
from ottla.controller.quorum.metadata_version import HIGHEST, LOWEST, level_of, release_of

# What kafka-storage version-mapping of Kafka 4.3.1 prints: transaction, group, ELR, share, streams.
_MAPPING = {
    "3.3-IV3": (0, 0, 0, 0, 0),
    "3.9-IV0": (0, 0, 0, 0, 0),
    "4.0-IV3": (2, 1, 0, 0, 0),
    "4.1-IV1": (2, 1, 1, 0, 0),
    "4.2-IV1": (2, 1, 1, 1, 1),
    "4.3-IV0": (2, 1, 1, 1, 1),
}


@pytest.mark.parametrize("release", _MAPPING)
def test_a_release_says_what_its_clusters_begin_with(release: str) -> None:
    levels = initial_levels(level_of(release), {}, is_dynamic=False)
    names = ("transaction", "group", "eligible.leader.replicas", "share", "streams")
    assert tuple(levels[f"{name}.version"] for name in names) == _MAPPING[release]
    assert (levels["metadata.version"], levels["kraft.version"]) == (level_of(release), 0)


@pytest.mark.parametrize(
    ("release", "level"), [("3.3", 7), ("3.7", 19), ("4.0", 25), ("4.3", 30), ("4.3.1", 30), ("4.3-IV0", 30)]
)
def test_releases_have_levels(release: str, level: int) -> None:
    assert level_of(release) == level


def test_every_level_has_a_release() -> None:
    assert [level_of(release_of(level)) for level in range(LOWEST, HIGHEST + 1)] == list(range(LOWEST, HIGHEST + 1))
    with pytest.raises(ValueError, match=r"Unknown metadata.version '4.4'. Supported metadata.version are: 3.3-IV3, "):
        level_of("4.4")


@pytest.mark.parametrize(
    ("wanted", "is_dynamic", "why"),
    [
        ({"planet.version": 1}, False, "Unsupported feature: planet.version. Supported features are: eligible"),
        ({"group.version": 2}, False, "No feature:group.version with feature level 2"),
        ({"kraft.version": 1}, False, "Cannot set kraft.version to 1 unless controller.quorum.voters is empty"),
        ({"kraft.version": 0}, True, "Cannot set kraft.version to 0 if controller.quorum.voters is empty"),
    ],
)
def test_levels_that_cannot_be(wanted: dict[str, int], is_dynamic: bool, why: str) -> None:
    with pytest.raises(FeatureError, match=why):
        initial_levels(HIGHEST, wanted, is_dynamic=is_dynamic)


def test_a_feature_needs_a_level_of_metadata_version() -> None:
    with pytest.raises(FeatureError, match=r"could not be set to 1 because it depends on metadata.version level 23"):
        initial_levels(22, {"eligible.leader.replicas.version": 1}, is_dynamic=False)
    assert initial_levels(30, {"group.version": 0}, is_dynamic=True)["group.version"] == 0
