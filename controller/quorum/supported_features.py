"""The features that Ottla's brokers support in a KRaft cluster, and advice on the unsupported ones.

A controller registers a broker only if the broker supports every feature at the level that is finalized.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...metadata.types import VersionRange
from .features import GROUP_VERSION, SHARE_VERSION, TRANSACTION_VERSION
from .metadata_version import ELR, FEATURE, HIGHEST, KRAFT_VERSION, LOWEST

SUPPORTED: Mapping[str, VersionRange] = {
    FEATURE: VersionRange(LOWEST, HIGHEST),
    KRAFT_VERSION: VersionRange(0, 1),
    TRANSACTION_VERSION: VersionRange(0, 2),
    GROUP_VERSION: VersionRange(0, 1),
    ELR: VersionRange(0, 1),
    SHARE_VERSION: VersionRange(0, 1),
}


def unsupported_features(finalized: Mapping[str, int]) -> Iterator[str]:
    """A line for each feature whose level the broker lacks, with the command that turns it off."""
    for name, level in finalized.items():
        supported = SUPPORTED.get(name, VersionRange(0, 0))
        if not supported.lowest <= level <= supported.highest:
            yield (
                f"{name} is finalized at level {level}, and this broker supports {supported.lowest} to {supported.highest}: "
                f"kafka-features downgrade --feature {name}={supported.highest}"
            )
