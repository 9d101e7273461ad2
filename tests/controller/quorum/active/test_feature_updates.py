"""Updates of features that the captured files don't have. Facts from Kafka's FeatureControlManagerTest and MetadataVersion."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

import pytest

from ottla.base.errors import ErrorCode
from ottla.controller.quorum.active.features import FeatureRules, UpgradeType, update_features
from ottla.metadata.image import ClusterImage
from ottla.metadata.types import VersionRange
from ottla.wire.messages.setting_records import ConfigRecord, FeatureLevelRecord
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from ottla.wire.schema import Message

from .helpers.cluster_images import after, broker, cluster, controller

RULES = FeatureRules(
    0,
    {
        "metadata.version": VersionRange(7, 30),
        "kraft.version": VersionRange(0, 1),
        "transaction.version": VersionRange(0, 2),
        "eligible.leader.replicas.version": VersionRange(0, 1),
    },
    [0],
    kraft_version=0,
)
TRANSACTIONS, ELR = "transaction.version", "eligible.leader.replicas.version"


def updated(
    image: ClusterImage, levels: Mapping[str, int], kind: int = UpgradeType.UPGRADE, rules: FeatureRules = RULES
) -> tuple[str | None, list[Message], int | None]:
    """Why it is refused, the records, and what Raft is asked for."""
    updates = [
        FeatureUpdateKey(feature=name, max_version_level=each, upgrade_type=kind) for name, each in levels.items()
    ]
    result = update_features(image, UpdateFeaturesRequest(feature_updates=updates), 2, rules)
    response = result.response.response
    assert response.error_code in (ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION)
    assert not (response.error_code and result.records)
    return response.error_message, [record for record, _ in result.records], result.response.kraft_version


@pytest.mark.parametrize(
    ("registered", "level", "kind", "why"),
    [
        pytest.param([broker(5)], 2, 1, "Broker 5 does not support this feature.", id="a broker without it"),
        pytest.param([broker(5, transaction_version=(0, 1))], 2, 1, "Broker 5 only supports versions 0-1", id="a level"),
        pytest.param([broker(5, transaction_version=(1, 1))], 2, 1, "Broker 5 only supports versions 1", id="one level"),
        pytest.param([broker(5, transaction_version=(0, 2))], 2, 1, None, id="a broker that has it"),
        pytest.param([controller(6)], 2, 1, "Controller 6 does not support this feature.", id="a controller without it"),
        pytest.param([controller(0)], 2, 1, None, id="this controller, whose registration is older than its program"),
        pytest.param([broker(5)], 0, 2, None, id="what no broker has can be turned off"),
    ],
)  # fmt: skip
def test_every_node_has_to_support_a_level(
    registered: Iterable[Message], level: int, kind: int, why: str | None
) -> None:
    image = after(cluster({TRANSACTIONS: 1}), registered)
    found, records, _ = updated(image, {TRANSACTIONS: level}, kind)
    if why is None:
        assert (found, records) == (None, [FeatureLevelRecord(name=TRANSACTIONS, feature_level=level)])
    else:
        assert found is not None and found.endswith(f"Invalid update version {level} for feature {TRANSACTIONS}. {why}")


@pytest.mark.parametrize(("level", "is_refused"), [(14, False), (15, True)])
def test_a_voter_that_has_not_registered_may_not_support_it(level: int, is_refused: bool) -> None:
    """Below level 15 controllers do not register, and nobody can tell."""
    rules = dataclasses.replace(RULES, voters=[0, 1])
    found, _, _ = updated(cluster({"metadata.version": level}), {TRANSACTIONS: 1}, rules=rules)
    assert (found is not None) == is_refused
    assert found is None or "controller 1 has not registered, and may not support this feature" in found


@pytest.mark.parametrize(
    ("level", "lowest"),
    [
        *(
            (7, 7),
            (8, 8),
            (9, 8),
            (10, 8),
            (11, 11),
            (12, 11),
            (13, 13),
            (14, 14),
            (15, 15),
            (16, 15),
            (17, 17),
            (18, 17),
        ),
        *((21, 17), (22, 17), (23, 23), (24, 23), (26, 23), (29, 23), (30, 30)),
    ],
)
def test_metadata_version_goes_back_as_far_as_all_records_can_be_read(level: int, lowest: int) -> None:
    image = cluster({"metadata.version": level})
    for kind in (UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE):
        allowed = [
            wanted for wanted in range(7, level + 1) if updated(image, {"metadata.version": wanted}, kind)[0] is None
        ]
        assert allowed == list(range(lowest, level + 1))


@pytest.mark.parametrize(("level", "is_refused"), [(22, True), (23, False)])
def test_eligible_leader_replicas_need_a_level_which_may_come_with_them(level: int, is_refused: bool) -> None:
    image = cluster({"metadata.version": 22})
    found, records, _ = updated(image, {ELR: 1, "metadata.version": level})
    assert (found is not None) == is_refused
    if not is_refused:
        assert records[0] == ConfigRecord(resource_type=4, name="min.insync.replicas", value="1")
        assert len(records) == 3


@pytest.mark.parametrize(
    ("current", "level", "kind", "asked", "is_refused"),
    [
        pytest.param(0, 1, 1, 1, False, id="upgrade"),
        pytest.param(1, 1, 1, 1, False, id="the level that is"),
        pytest.param(1, 0, 2, None, True, id="downgrade"),
        pytest.param(1, 1, 2, None, False, id="a downgrade to the level that is"),
    ],
)
def test_the_version_of_raft_is_rafts(current: int, level: int, kind: int, asked: int | None, is_refused: bool) -> None:
    rules = dataclasses.replace(RULES, kraft_version=current)
    found, records, kraft_version = updated(cluster(), {"kraft.version": level}, kind, rules)
    assert (found is not None) == is_refused
    assert kraft_version == asked
    assert len(records) == (asked is not None)
