"""Every kind of change of a partition: the cases are those of Kafka's PartitionChangeBuilderTest."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import pytest

from ottla.base.partitions import NO_LEADER
from ottla.controller.quorum.active.partition_changes import (
    ElectedLeader,
    ElectionGoal,
    PartitionRules,
    PartitionTarget,
    completed_reassignment,
    elect,
    partition_change,
)
from ottla.controller.quorum.metadata_version import level_of
from ottla.controller.quorum.replay import changed_partition
from ottla.metadata.types import LOST_DIRECTORY, UNASSIGNED_DIRECTORY, PartitionRegistration
from ottla.wire.messages.topic_records import PartitionChangeRecord

TOPIC = b"topic-id-16-byte"
PREFERRED, ONLINE, UNCLEAN = ElectionGoal.PREFERRED, ElectionGoal.ONLINE, ElectionGoal.UNCLEAN
LEVELS = {0: level_of("3.7-IV0"), 1: level_of("3.7-IV2"), 2: level_of("4.0-IV1")}
"""A level of metadata.version at which the record has this version."""


def directory(broker: int) -> bytes:
    return b"directory-of-%03d" % broker


def registration(
    *, replicas: tuple[int, ...], isr: tuple[int, ...], leader: int, **others: Any
) -> PartitionRegistration:
    directories = others.pop("directories", tuple(map(directory, replicas)))
    return PartitionRegistration(leader, 100, 200, isr, replicas, directories=directories, **others)


def rules(
    version: int = 2, min_isr: int = 2, *, dead: Collection[int] = (), has_elr: bool | None = None
) -> PartitionRules:
    return PartitionRules(
        may_lead=lambda broker: broker not in dead,
        default_directory=lambda broker: UNASSIGNED_DIRECTORY,
        level=LEVELS[version],
        min_isr=min_isr,
        has_elr=version == 2 if has_elr is None else has_elr,
    )


FOO = registration(
    replicas=(2, 1, 3), isr=(2, 1, 3), leader=1, directories=(directory(2), directory(1), UNASSIGNED_DIRECTORY)
)
BAR = registration(
    replicas=(1, 2, 3, 4),
    isr=(1, 2, 3),
    removing=(1,),
    adding=(4,),
    leader=1,
    directories=(UNASSIGNED_DIRECTORY, *map(directory, (2, 3, 4))),
)
BAZ = registration(replicas=(2, 1, 3), isr=(1, 3), leader=3)
OFFLINE = registration(replicas=(2, 1, 3), isr=(3,), leader=NO_LEADER)
OFFLINE_WITH_ELR = registration(replicas=(2, 1, 3), isr=(), elr=(3,), last_known_elr=(2,), leader=NO_LEADER)
FULL = registration(replicas=(1, 2, 3, 4), isr=(1, 2, 3, 4), leader=1)


class Election(NamedTuple):
    partition: PartitionRegistration
    goal: ElectionGoal
    isr: tuple[int, ...]
    dead: tuple[int, ...]
    leader: int
    is_unclean: bool = False
    replicas: tuple[int, ...] | None = None


ELECTIONS = {
    "the preferred one takes over": Election(FOO, PREFERRED, (2, 1, 3), (3,), 2),
    "the present one stays": Election(FOO, ONLINE, (2, 1, 3), (3,), 1),
    "unclean: the present one stays": Election(FOO, UNCLEAN, (2, 1, 3), (3,), 1),
    "the present one stays in a smaller ISR": Election(FOO, ONLINE, (1, 3), (3,), 1),
    "unclean: the present one stays in a smaller ISR": Election(FOO, UNCLEAN, (1, 3), (3,), 1),
    "nobody in sync is alive": Election(FOO, ONLINE, (3,), (3,), NO_LEADER),
    "unclean: the first that is alive": Election(FOO, UNCLEAN, (3,), (3,), 2, is_unclean=True),
    "unclean: one in sync goes before": Election(FOO, UNCLEAN, (4,), (3,), 4, replicas=(2, 1, 3, 4)),
    "preferred is not in sync": Election(BAZ, PREFERRED, (1, 3), (), 3),
    "the last one stays": Election(BAZ, ONLINE, (1, 3), (), 3),
    "unclean: the last one stays": Election(BAZ, UNCLEAN, (1, 3), (), 3),
}


@pytest.mark.parametrize("version", LEVELS)
@pytest.mark.parametrize("case", ELECTIONS.values(), ids=ELECTIONS)
def test_who_is_elected(case: Election, version: int) -> None:
    replicas = case.replicas or case.partition.replicas
    elected = elect(case.partition, replicas, case.isr, (), case.goal, rules(version, dead=case.dead))
    assert elected == ElectedLeader(case.leader, case.is_unclean)


class Change(NamedTuple):
    """``record`` has the fields of the record; none where nothing changes."""

    partition: PartitionRegistration
    target: PartitionTarget
    rules: PartitionRules
    record: dict[str, Any]


def of_every_version(
    name: str,
    partition: PartitionRegistration,
    target: PartitionTarget,
    record: dict[str, Any],
    *,
    directories: list[bytes] | None = None,
    dead: tuple[int, ...] = (3,),
) -> dict[str, Change]:
    """The same change with records of each version; ``directories`` are told from version 1 on."""
    with_directories = record if directories is None else {**record, "directories": directories}
    return {
        f"{name}, v{version}": Change(
            partition, target, rules(version, dead=dead), with_directories if version else record
        )
        for version in LEVELS
    }


def at_level(release: str, partition: PartitionRegistration, target: PartitionTarget, record: dict[str, Any]) -> Change:
    level = level_of(release)
    return Change(partition, target, rules(0, dead=(3,))._replace(level=level), record)


CHANGES = {
    **of_every_version("no change", FOO, PartitionTarget(), {}),
    **of_every_version("no change, unclean", FOO, PartitionTarget(goal=UNCLEAN), {}),
    **of_every_version("no change while moving", BAR, PartitionTarget(), {}),
    **of_every_version("no change while moving, unclean", BAR, PartitionTarget(goal=UNCLEAN), {}),
    **of_every_version("no change, preferred", BAZ, PartitionTarget(goal=PREFERRED), {}, dead=()),
    **of_every_version("a smaller ISR", FOO, PartitionTarget(isr=(2, 1)), {"isr": [2, 1]}),
    **of_every_version("an ISR without the leader", FOO, PartitionTarget(isr=(2, 3)), {"isr": [2, 3], "leader": 2}),
    **of_every_version(
        "replicas in another order",
        FOO,
        PartitionTarget(replicas=(3, 2, 1)),
        {"replicas": [3, 2, 1]},
        directories=[UNASSIGNED_DIRECTORY, directory(2), directory(1)],
    ),
    **of_every_version(
        "an ISR that completes a reassignment",
        BAR,
        PartitionTarget(isr=(1, 2, 3, 4)),
        {"replicas": [2, 3, 4], "isr": [2, 3, 4], "leader": 2, "removing_replicas": [], "adding_replicas": []},
        directories=[directory(2), directory(3), directory(4)],
    ),
    **of_every_version(
        "a reassignment that is cancelled",
        BAR,
        PartitionTarget(replicas=(1, 2, 3), isr=(1, 2, 3), removing=(), adding=()),
        {"replicas": [1, 2, 3], "leader": 1, "removing_replicas": [], "adding_replicas": []},
        directories=[UNASSIGNED_DIRECTORY, directory(2), directory(3)],
    ),
    **of_every_version(
        "a replica less",
        FOO,
        PartitionTarget(replicas=(1, 2, 3), removing=(3,)),
        {"replicas": [1, 2], "isr": [2, 1], "leader": 1},
        directories=[directory(1), directory(2)],
    ),
    **of_every_version(
        "a replica more",
        FOO,
        PartitionTarget(replicas=(1, 2, 3, 4), adding=(4,)),
        {"replicas": [1, 2, 3, 4], "adding_replicas": [4]},
        directories=[directory(1), directory(2), UNASSIGNED_DIRECTORY, UNASSIGNED_DIRECTORY],
    ),
    **of_every_version(
        "an unclean election",
        FOO,
        PartitionTarget(isr=(3,), goal=UNCLEAN),
        {"isr": [2], "leader": 2, "leader_recovery_state": 1},
    ),
    "an unclean election of an offline partition, v0": Change(
        OFFLINE,
        PartitionTarget(goal=UNCLEAN),
        rules(0, dead=(2, 3)),
        {"isr": [1], "leader": 1, "leader_recovery_state": 1},
    ),
    **{
        f"an unclean election forgets the ELR, from an ISR of {isr or 'none'}": Change(
            OFFLINE_WITH_ELR,
            PartitionTarget(isr=isr, goal=UNCLEAN),
            rules(dead=(2, 3)),
            {
                "isr": [1],
                "leader": 1,
                "leader_recovery_state": 1,
                "eligible_leader_replicas": [],
                "last_known_elr": [],
            },
        )
        for isr in ((), (2,))
    },
    "the leader is a replica that goes, and nobody else may lead": Change(
        registration(replicas=(2, 3, 0, 1), isr=(0, 1), removing=(0, 1), adding=(2, 3), leader=0),
        PartitionTarget(isr=(0, 1, 2, 3)),
        rules(0, dead=(0, 1, 2, 3)),
        {"replicas": [2, 3], "isr": [2, 3], "removing_replicas": [], "adding_replicas": [], "leader": NO_LEADER},
    ),
    "directories follow their replicas": Change(
        registration(replicas=(2, 1, 3), isr=(2, 1, 3), leader=1),
        PartitionTarget(replicas=(3, 1, 5, 4), directories={5: b"new-directory-05"}),
        rules(1),
        {
            "leader": 1,
            "replicas": [3, 1, 5, 4],
            "directories": [directory(3), directory(1), b"new-directory-05", UNASSIGNED_DIRECTORY],
        },
    ),
    "replicas move to other directories": Change(
        registration(replicas=(2, 1, 3), isr=(2, 1, 3), leader=2),
        PartitionTarget(directories={3: b"new-directory-03", 1: LOST_DIRECTORY}),
        rules(2),
        {"directories": [directory(2), LOST_DIRECTORY, b"new-directory-03"]},
    ),
    "a leader confirms its recovery": Change(
        registration(replicas=(1, 2), isr=(1,), leader=1, is_recovering=True),
        PartitionTarget(isr=(1, 2), is_recovering=False),
        rules(2),
        {"isr": [1, 2], "leader_recovery_state": 0},
    ),
    # --- when the leader epoch grows
    **{
        f"a smaller ISR at {release}": at_level(release, FOO, PartitionTarget(isr=(2, 1)), {"isr": [2, 1], **leader})
        for release, leader in {
            "3.4-IV0": {"leader": 1},
            "3.5-IV2": {"leader": 1},
            "3.6-IV0": {},
            "3.7-IV0": {},
        }.items()
    },
    **{
        f"a larger ISR at {release}": at_level(
            release,
            registration(replicas=(2, 1, 4), isr=(2, 1), leader=1),
            PartitionTarget(isr=(2, 1, 4)),
            {"isr": [2, 1, 4]},
        )
        for release in ("3.4-IV0", "3.5-IV2", "3.6-IV0", "3.7-IV0")
    },
    **{
        f"another set of replicas at {release}": at_level(
            release, FOO, PartitionTarget(replicas=(2, 1, 4)), {"replicas": [2, 1, 4], "leader": 1}
        )
        for release in ("3.4-IV0", "3.5-IV2", "3.6-IV0", "3.7-IV0")
    },
    **{
        f"without ELR the last one stays in sync at {release}": at_level(
            release, registration(replicas=(3,), isr=(3,), leader=3), PartitionTarget(isr=()), {"leader": NO_LEADER}
        )
        for release in ("3.4-IV0", "3.5-IV2", "3.6-IV0", "3.7-IV0")
    },
    # --- eligible leader replicas
    **{
        f"the ISR falls below the minimum, v{version}": Change(
            FULL, PartitionTarget(isr=(1, 2), goal=PREFERRED), rules(version, 3, dead=(3,)), {"isr": [1, 2], **elr}
        )
        for version, elr in {0: {}, 1: {}, 2: {"eligible_leader_replicas": [3, 4]}}.items()
    },
    **{
        f"the ISR is full again, v{version}": Change(
            registration(replicas=(1, 2, 3, 4), isr=(1, 2), elr=(3,), leader=1),
            PartitionTarget(isr=(1, 2, 3), goal=PREFERRED),
            rules(version, 3, dead=(3,)),
            {"isr": [1, 2, 3], "eligible_leader_replicas": []},
        )
        for version in LEVELS
    },
    **{
        f"a member joins that was not eligible, v{version}": Change(
            registration(replicas=(1, 2, 3, 4), isr=(1,), elr=(3,), leader=1),
            PartitionTarget(isr=(1, 4), goal=PREFERRED),
            rules(version, 3, dead=(3,)),
            {"isr": [1, 4], **elr},
        )
        for version, elr in {
            0: {"eligible_leader_replicas": []},
            1: {"eligible_leader_replicas": []},
            2: {},
        }.items()
    },
    **{
        f"an unclean shutdown, v{version}": Change(
            registration(replicas=(1, 2, 3, 4), isr=(1,), elr=(2, 3), leader=1),
            PartitionTarget(unclean_shutdown=(3,), goal=PREFERRED),
            rules(version, 3, dead=(3,)),
            {"eligible_leader_replicas": elr},
        )
        for version, elr in ((0, []), (1, []), (2, [2]))
    },
    "a replica that is moved elsewhere leaves the ELR": Change(
        registration(replicas=(1, 2, 3), isr=(2,), elr=(1, 3), leader=2, adding=(3,), removing=(1, 2)),
        PartitionTarget(isr=(2, 3)),
        rules(2, 3),
        {
            "isr": [3],
            "leader": 3,
            "replicas": [3],
            "adding_replicas": [],
            "removing_replicas": [],
            "directories": [directory(3)],
            "eligible_leader_replicas": [],
        },
    ),
    "one of the ELR leads": Change(
        registration(replicas=(1, 2, 3, 4), isr=(1,), elr=(3,), leader=1),
        PartitionTarget(isr=(), goal=PREFERRED),
        rules(2, 3, dead=(1,)),
        {"isr": [3], "eligible_leader_replicas": [1], "leader": 3},
    ),
    "the ISR becomes empty": Change(
        FULL,
        PartitionTarget(isr=(), goal=PREFERRED),
        rules(2, 3, dead=(1, 2, 3, 4)),
        {"isr": [], "leader": NO_LEADER, "eligible_leader_replicas": [1, 2, 3, 4], "last_known_elr": [1]},
    ),
    "an unclean shutdown of one of the ELR leaves the last known leader": Change(
        registration(replicas=(1, 2, 3, 4), isr=(), elr=(1, 2, 3, 4), last_known_elr=(1,), leader=NO_LEADER),
        PartitionTarget(unclean_shutdown=(2,), goal=PREFERRED),
        rules(2, 3, dead=(1, 2, 3, 4)),
        {"eligible_leader_replicas": [1, 3, 4]},
    ),
    "the last known leader leads": Change(
        registration(replicas=(1, 2, 3, 4), isr=(), last_known_elr=(1,), leader=NO_LEADER),
        PartitionTarget(isr=(), goal=PREFERRED),
        rules(2, 3),
        {"isr": [1], "leader": 1, "leader_recovery_state": 1, "last_known_elr": []},
    ),
    "the last known leader waits for the ELR": Change(
        registration(replicas=(1, 2, 3, 4), isr=(), elr=(3,), last_known_elr=(1,), leader=NO_LEADER),
        PartitionTarget(isr=(), goal=PREFERRED),
        rules(2, 3, dead=(3,)),
        {},
    ),
}


@pytest.mark.parametrize("case", CHANGES.values(), ids=CHANGES)
def test_the_record_of_a_change(case: Change) -> None:
    made = partition_change(TOPIC, 0, case.partition, case.target, case.rules)
    if not case.record:
        assert made is None
        return
    assert made is not None
    record, version = made
    assert record == PartitionChangeRecord(topic_id=TOPIC, partition_id=0, **case.record)
    assert version == next(number for number in (2, 1, 0) if case.rules.level >= LEVELS[number] or not number)


@pytest.mark.parametrize("version", LEVELS)
def test_a_leader_that_goes_and_returns_is_still_recovering(version: int) -> None:
    partition = registration(replicas=(1, 2, 3), isr=(1,), leader=1, is_recovering=True)
    gone = partition_change(TOPIC, 0, partition, PartitionTarget(isr=()), rules(version, dead=(1, 2, 3), has_elr=False))
    assert gone is not None and isinstance(gone[0], PartitionChangeRecord)
    assert (gone[0].leader, gone[0].leader_recovery_state) == (NO_LEADER, -1)
    partition = changed_partition(partition, gone[0])
    assert (partition.isr, partition.is_recovering) == ((1,), True)
    back = partition_change(TOPIC, 0, partition, PartitionTarget(), rules(version, has_elr=False))
    assert back is not None and isinstance(back[0], PartitionChangeRecord)
    partition = changed_partition(partition, back[0])
    assert (partition.leader, partition.isr, partition.is_recovering) == (1, (1,), True)


REASSIGNMENTS: dict[str, tuple[dict[str, tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]] | None]] = {
    "none under way": ({"replicas": (0, 1, 2), "isr": (0, 1, 2)}, None),
    "nothing added, a removed one out of sync": (
        {"replicas": (0, 1, 2), "removing": (2,), "isr": (0, 1)},
        ((0, 1), (0, 1)),
    ),
    "the added one is not in sync": ({"replicas": (0, 1, 2), "adding": (2,), "isr": (0, 1)}, None),
    "the added one is in sync": ({"replicas": (0, 1, 2), "adding": (2,), "isr": (0, 2)}, ((0, 1, 2), (0, 2))),
    "all that stay, and not the added": (
        {"replicas": (0, 1, 2, 3), "removing": (0,), "adding": (3,), "isr": (0, 1, 2)},
        None,
    ),
    "all is in sync": (
        {"replicas": (0, 1, 2, 3), "removing": (0,), "adding": (3,), "isr": (0, 1, 2, 3)},
        ((1, 2, 3), (1, 2, 3)),
    ),
    "no in-sync replica would be left": ({"replicas": (0, 1, 2), "removing": (0,), "isr": (0,)}, None),
    "a lower factor waits for all that stay": (
        {"replicas": (0, 1, 2, 3, 4, 5), "removing": (0, 1), "adding": (5,), "isr": (0, 1, 5)},
        None,
    ),
    "a lower factor with all that stay": (
        {"replicas": (0, 1, 2, 3, 4, 5), "removing": (0, 1), "adding": (5,), "isr": (0, 2, 3, 4, 5)},
        ((2, 3, 4, 5), (2, 3, 4, 5)),
    ),
}


@pytest.mark.parametrize(("given", "completed"), REASSIGNMENTS.values(), ids=REASSIGNMENTS)
def test_when_a_reassignment_is_over(
    given: dict[str, tuple[int, ...]], completed: tuple[tuple[int, ...], tuple[int, ...]] | None
) -> None:
    assert completed_reassignment(**{"adding": (), "removing": (), **given}) == completed
