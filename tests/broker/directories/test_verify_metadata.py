"""The checks of the cluster's metadata in a log directory: before a take-over, in the middle of it, and after it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.broker.directories.verify_metadata import verify_metadata
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.store.cluster_store import Create
from ottla.log.disk import Disk
from ottla.log.metadata_snapshots import MetadataSnapshotId, SnapshotHead, encode_snapshot

from ..helpers.dying_disk import DiedError, DyingDisk
from ..helpers.old_directories import change_state, full_disk, full_state, take_over, write_state

VOTERS = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


def found(disk: Disk) -> list[str]:
    return [str(finding) for finding in verify_metadata(disk, "/a")]


def test_before_and_after_nothing_is_wrong() -> None:
    disk = full_disk(full_state())
    assert found(disk) == []
    take_over(disk)
    assert found(disk) == []
    assert list(verify_metadata(disk, "/b")) == []


def test_in_the_middle() -> None:
    """Each crash leaves something that is named, or nothing that is different."""
    seen: set[str] = set()
    whole = full_disk(full_state())
    counted = whole.copy()
    take_over(counted)
    for number in range(counted.operations):
        disk = whole.copy()
        disk.dies_at = number
        with pytest.raises(DiedError):
            take_over(disk)
        disk.restart(None)
        before = disk.operations
        seen |= {*found(disk)}
        assert disk.operations == before, "nothing is written"
    assert seen == {
        "__cluster_state: its take-over into KRaft did not come to its end; a start takes it over",
        "__cluster_state_taken: it was taken over, and not set aside to its end; a start sets it aside",
    }


def tear(disk: Disk) -> None:
    file = disk.open("/a/__cluster_state/journal")
    file.write(b"torn", file.size())


def damage(name: str) -> Callable[[Disk], None]:
    def change(disk: Disk) -> None:
        disk.open(f"/a/{name}").write(b"\xff" * 16, 20)

    return change


def add_what_is_not_understood(disk: Disk) -> None:
    change_state(disk, Create(znodes.topic_path("t"), b"?"))


BEFORE = {
    "a torn write": (
        tear,
        "__cluster_state/journal: its last write did not come to its end",
        "cuts that off: it was never acknowledged",
    ),
    "a damaged journal": (
        damage("__cluster_state/journal"),
        "__cluster_state/journal: damaged at byte 0",
        "refuses the directory",
    ),
    "a damaged snapshot": (
        damage("__cluster_state/snapshot"),
        "__cluster_state/snapshot: damaged at byte 17",
        "refuses the directory",
    ),
    "a topic": (
        add_what_is_not_understood,
        "__cluster_state: /brokers/topics/t is not understood",
        "refuses the directory",
    ),
}


@pytest.mark.parametrize(("change", "problem", "start"), BEFORE.values(), ids=BEFORE.keys())
def test_damage_before(change: Callable[[Disk], None], problem: str, start: str) -> None:
    disk = full_disk(full_state())
    change(disk)
    (line,) = found(disk)
    assert line.startswith(problem) and line.endswith(f"; a start {start}")


def add_an_older_snapshot(disk: Disk) -> None:
    newer = b"".join(encode_snapshot(SnapshotHead(1), (), epoch=1, now_ms=1))
    disk.write_file(f"/a/__cluster_metadata-0/{MetadataSnapshotId(7, 1).file_name}", newer)
    damage(VOTERS)(disk)


AFTER = {
    "the first records": (damage("bootstrap.checkpoint"), "bootstrap.checkpoint: ", "refuses the directory"),
    "the voters": (damage(VOTERS), f"{VOTERS}: ", "refuses the directory"),
    "an older snapshot": (add_an_older_snapshot, f"{VOTERS}: ", "does not look there"),
    "a vote": (
        lambda disk: disk.write_file("/a/__cluster_metadata-0/quorum-state", b"{"),
        "__cluster_metadata-0/quorum-state: ",
        "refuses the directory",
    ),
    "what was not written to its end": (
        lambda disk: disk.write_file(f"/a/{VOTERS}.part", b""),
        f"{VOTERS}.part: it was not written, or removed, to its end",
        "removes it",
    ),
    "the way back": (
        damage("before-kraft.snapshot"),
        "before-kraft.snapshot: damaged at byte 17",
        "does not look there, and there is no way back",
    ),
    "an older Ottla since": (
        lambda disk: (disk.remove("/a/__cluster_state"), write_state(disk, full_state())),
        "__cluster_state: before-kraft.* exists, so an Ottla before KRaft has run without the metadata set aside there",
        "refuses the directory",
    ),
}


@pytest.mark.parametrize(("change", "problem", "start"), AFTER.values(), ids=AFTER.keys())
def test_damage_after(change: Callable[[Disk], None], problem: str, start: str) -> None:
    disk: DyingDisk = full_disk(full_state())
    take_over(disk)
    change(disk)
    (line,) = found(disk)
    assert line.startswith(problem) and line.endswith(f"; a start {start}")
