"""``ottla cluster upgrade``: raises the finalized feature levels of a cluster once its nodes are newer ones.

A level can be finalized where every node supports it. The nodes that can be asked tell their ranges, brokers by their listeners
and controllers by theirs; the active controller knows the registrations of all, and has the last word. Kafka's kafka-features
asks one node for the ranges. Source of the rules: FeatureControlManager, and FeatureCommand for what a release stands for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

from ....base.wording import meant
from ....controller.quorum import metadata_version
from ....controller.quorum.features import FEATURES
from ....controller.quorum.metadata_version import FEATURE, KRAFT_VERSION
from ....metadata.types import VersionRange
from ....wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from ..client import ClusterConnection
from ..output import OutputColumn, as_object, print_json, print_rows
from ..running import ToolError, UsageError, refusal
from .quorum import Quorum, describe_quorum
from .quorum_client import ControllerConnection, QuorumClient, quorum_client

_VERSIONS = (1, 2)
_UPGRADE, _SAFE_DOWNGRADE = 1, 2
_ABSENT = VersionRange(0, 0)

COLUMNS = (
    OutputColumn("feature"),
    OutputColumn("finalized", is_number=True),
    OutputColumn("supported"),
    OutputColumn("wanted", is_number=True),
    OutputColumn("outcome"),
)


class UpgradeOptions(NamedTuple):
    """The options: levels by name, or a release; neither for the highest levels that all nodes support."""

    features: Sequence[str] = ()
    release: str | None = None
    is_downgrade: bool = False


class _Node(NamedTuple):
    """A node, and the features that it supports."""

    what: str
    supported: Mapping[str, VersionRange] | None
    """None if the node could not be asked."""


def upgrade(
    connection: ClusterConnection, controller: str | None, wish: UpgradeOptions, *, is_dry: bool, as_json: bool
) -> None:
    """A row for each feature, and what became of it. Raises ToolError where the controller refuses."""
    if wish.features and wish.release is not None:
        raise UsageError("--release-version and --feature cannot be given together")
    named = _named(wish)
    with closing(quorum_client(connection, controller)) as client:
        quorum = describe_quorum(client)
        finalized = {KRAFT_VERSION: quorum.kraft_version, **client.finalized()}
        nodes = _nodes(client, quorum)
        ranges = _common(nodes)
        wanted = _highest(ranges, finalized) if named is None else named
        for name in wanted:
            if name not in ranges and (close := meant(name, ranges)):
                raise ToolError(f"there is no feature {name}{close}")
        changes = {name: level for name, level in wanted.items() if level != finalized.get(name, 0)}
        _check_direction(changes, finalized, wish)
        why = _refused(client, changes, finalized, is_dry=is_dry) if changes else None
    outcome = "refused" if why else "would be set" if is_dry else "set"
    names = sorted({*ranges, *finalized, *wanted}, key=lambda name: (name != FEATURE, name))
    rows = [
        (
            name,
            finalized.get(name, 0),
            _range_text(ranges, name),
            wanted.get(name),
            outcome if name in changes else None,
        )
        for name in names
    ]
    print_rows(COLUMNS, rows) if not as_json else print_json({"features": [as_object(COLUMNS, row) for row in rows]})
    sys.stdout.flush()
    for line in _remarks(nodes, ranges):
        print(line, file=sys.stderr)
    if why is not None:
        raise ToolError(why)


def _named(wish: UpgradeOptions) -> dict[str, int] | None:
    """The levels that are asked for by name; None for all there are. Raises UsageError."""
    if wish.release is not None:
        try:
            level = metadata_version.level_of(wish.release)
        except ValueError as error:
            raise UsageError(str(error)) from None
        # Kafka's tool leaves out those that a release begins without, unless they are turned off.
        defaults = {feature.name: feature.default_level(level) for feature in FEATURES}
        return {FEATURE: level, **{name: each for name, each in defaults.items() if each or wish.is_downgrade}}
    if not wish.features:
        if wish.is_downgrade:
            raise UsageError("--downgrade needs --feature, or --release-version")
        return None
    return dict(map(_parse, wish.features))


def _parse(text: str) -> tuple[str, int]:
    """``NAME=LEVEL``; a level of metadata.version may be a release."""
    name, separator, level = (part.strip() for part in text.partition("="))
    if separator and level.isdecimal():
        return name, int(level)
    if separator and name == FEATURE:
        try:
            return name, metadata_version.level_of(level)
        except ValueError as error:
            raise UsageError(str(error)) from None
    raise UsageError(f"--feature takes NAME=LEVEL, not {text!r}")


# --- what nodes support -----------------------------------------------------------------------------------------------


def _nodes(client: QuorumClient, quorum: Quorum) -> list[_Node]:
    """Brokers, and controllers as far as their listener lets this client in."""
    brokers = sorted(client.broker_features().items())
    found = [_Node(f"broker {node_id}", None if each is None else each.supported) for node_id, each in brokers]
    for node_id in quorum.voters:
        supported = None
        for listener in quorum.endpoints.get(node_id, []):
            try:
                with ControllerConnection(listener.host, listener.port, client.options) as connection:
                    supported = connection.features().supported
                    break
            except ToolError:
                continue
        found.append(_Node(f"controller {node_id}", supported))
    return found


def _common(nodes: Iterable[_Node]) -> dict[str, VersionRange]:
    """What every node that could be asked supports. Raises ToolError where none could be."""
    ranges = [node.supported for node in nodes if node.supported is not None]
    if not ranges:
        raise ToolError("no node has told which features it supports")
    names = {name for each in ranges for name in each}
    found = {}
    for name in names:
        every = [each.get(name, _ABSENT) for each in ranges]
        found[name] = VersionRange(max(each.lowest for each in every), min(each.highest for each in every))
    return found


def _highest(ranges: Mapping[str, VersionRange], finalized: Mapping[str, int]) -> dict[str, int]:
    return {name: max(each.highest, finalized.get(name, 0)) for name, each in ranges.items()}


def _range_text(ranges: Mapping[str, VersionRange], name: str) -> str | None:
    found = ranges.get(name)
    return None if found is None else f"{found.lowest}-{found.highest}"


def _remarks(nodes: Sequence[_Node], ranges: Mapping[str, VersionRange]) -> Iterable[str]:
    """Which node could not be asked, and which holds the others back."""
    for node in nodes:
        if node.supported is None:
            yield f"{node.what} was not asked: it is down, or its listener does not let this client in"
            continue
        for name, common in sorted(ranges.items()):
            own = node.supported.get(name, _ABSENT)
            others = [each.supported.get(name, _ABSENT).highest for each in nodes if each.supported is not None]
            if own.highest == common.highest < max(others):
                yield f"{node.what} supports {name} up to {own.highest}, others up to {max(others)}"


# --- the change -------------------------------------------------------------------------------------------------------


def _check_direction(changes: Mapping[str, int], finalized: Mapping[str, int], wish: UpgradeOptions) -> None:
    for name, level in changes.items():
        current = finalized.get(name, 0)
        if level < current and not wish.is_downgrade:
            raise UsageError(f"{name} is at level {current}: a lower one takes --downgrade")
        if level > current and wish.is_downgrade and wish.release is None:
            raise UsageError(f"{name} is at level {current}: {level} is no downgrade")


def _refused(
    client: QuorumClient, changes: Mapping[str, int], finalized: Mapping[str, int], *, is_dry: bool
) -> str | None:
    """Have the active controller make the changes, all or none; why it does not."""
    updates = [
        FeatureUpdateKey(
            feature=name,
            max_version_level=level,
            upgrade_type=_UPGRADE if level > finalized.get(name, 0) else _SAFE_DOWNGRADE,
        )
        for name, level in changes.items()
    ]
    response: UpdateFeaturesResponse = client.ask(
        UpdateFeaturesRequest(feature_updates=updates, validate_only=is_dry), *_VERSIONS
    )
    refusals = [refusal(response.error_code, response.error_message)] if response.error_code else []
    refusals += [
        f"{each.feature}: {refusal(each.error_code, each.error_message)}"
        for each in response.results
        if each.error_code
    ]
    return "; ".join(refusals) or None
