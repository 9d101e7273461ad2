"""Finalized features of a KRaft cluster: their levels, and the initial level in each release (KIP-584, KIP-1022).

A level can be finalized where every node supports it. Source: Kafka's Feature and its FeatureVersion enumerations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...metadata.types import VersionRange
from .metadata_version import ELR, FEATURE, KRAFT_VERSION

TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION = "group.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"


class FeatureError(ValueError):
    """Levels that no cluster can have. ``str()`` is one line for people."""


class FeatureDefinition(NamedTuple):
    """A feature and its levels, which begin at 0."""

    name: str
    starts: tuple[int, ...]
    """By level, the level of ``metadata.version`` from which on new clusters begin with it."""
    needs: int = 0
    """The level of ``metadata.version`` that every level above 0 depends on."""

    @property
    def highest(self) -> int:
        return len(self.starts) - 1

    def default_level(self, metadata_version: int) -> int:
        """The level of a new cluster."""
        return max(level for level, start in enumerate(self.starts) if start <= metadata_version)

    def check_dependency(self, level: int, metadata_version: int) -> None:
        """Raises FeatureError for a level that ``metadata.version`` is too low for."""
        if level and metadata_version < self.needs:
            raise FeatureError(
                f"{self.name} could not be set to {level} because it depends on {FEATURE} level {self.needs}"
            )


FEATURES = (
    FeatureDefinition(KRAFT_VERSION, (7, 21)),
    FeatureDefinition(TRANSACTION_VERSION, (7, 24, 24)),
    FeatureDefinition(GROUP_VERSION, (7, 22)),
    FeatureDefinition(ELR, (7, 26), needs=23),
    FeatureDefinition(SHARE_VERSION, (7, 28)),
    FeatureDefinition(STREAMS_VERSION, (7, 29)),
)


def initial_levels(
    metadata_version: int,
    wanted: Mapping[str, int],
    *,
    is_dynamic: bool,
    supported: Mapping[str, VersionRange] | None = None,
) -> dict[str, int]:
    """The levels that a new cluster begins with: those ``wanted``, and the defaults. Raises FeatureError.

    ``is_dynamic``: the voters of the quorum are records, and not a property. ``supported``: the levels that the cluster's
    controllers support. No default is above them, and a wanted level above them is refused. None: they support every level.
    """
    known = {feature.name: feature for feature in FEATURES}
    for name in wanted:
        if name != FEATURE and name not in known:
            raise FeatureError(f"Unsupported feature: {name}. Supported features are: {', '.join(sorted(known))}")
    levels = {FEATURE: metadata_version}
    for name, feature in known.items():
        if name == KRAFT_VERSION:
            levels[name] = _kraft_version(wanted.get(name), is_dynamic=is_dynamic)
        else:
            default = feature.default_level(metadata_version)
            levels[name] = wanted.get(name, default if supported is None else min(default, _highest(name, supported)))
        if not 0 <= levels[name] <= feature.highest:
            raise FeatureError(f"No feature:{name} with feature level {levels[name]}")
        if supported is not None and levels[name] > _highest(name, supported):
            raise FeatureError(
                f"{name} cannot be {levels[name]}: a controller of Ottla supports it up to level {_highest(name, supported)}"
            )
        feature.check_dependency(levels[name], metadata_version)
    return levels


def _highest(name: str, supported: Mapping[str, VersionRange]) -> int:
    return supported[name].highest if name in supported else 0


def _kraft_version(wanted: int | None, *, is_dynamic: bool) -> int:
    flags = "--standalone, --initial-controllers, or --no-initial-controllers"
    if wanted == 0 and is_dynamic:
        raise FeatureError(
            "Cannot set kraft.version to 0 if controller.quorum.voters is empty and one of the flags "
            f"{flags} is used. For dynamic controllers support, try removing the --feature flag for kraft.version."
        )
    if wanted and not is_dynamic:
        raise FeatureError(
            f"Cannot set kraft.version to {wanted} unless controller.quorum.voters is empty and one of the flags {flags} is "
            f"used. For dynamic controllers support, try using one of {flags} and removing controller.quorum.voters."
        )
    return int(is_dynamic) if wanted is None else wanted
