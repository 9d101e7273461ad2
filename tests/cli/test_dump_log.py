"""``ottla dump-log`` on the metadata of a lone broker: before a take-over, after it, and what the cluster begins with."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.cli import dump_log
from ottla.controller.zookeeper.nodes import znodes
from ottla.log.disk import OsDisk

from ..broker.helpers.dying_disk import DyingDisk
from ..broker.helpers.old_directories import own, take_over, write_state
from ..controller.old_state import CLUSTER_ID, rich_state

Dump = Callable[..., str]


@pytest.fixture
def dump(tmp_path, capsys) -> Dump:
    """Prints a file of a folder, before the take-over of what is in it or after."""

    def run(name: str, *, is_taken_over: bool = False, shows_data: bool = False, decodes: bool = False) -> str:
        disk = DyingDisk()
        own(disk, "/a")
        write_state(disk, rich_state(), snapshot_after=12)
        if is_taken_over:
            take_over(disk, directories=("/a",))
        path = tmp_path / name.rpartition("/")[2]
        OsDisk().write_file(str(path), disk.read_file(f"/a/{name}"))
        code = dump_log.run(
            [str(path)],
            print_data_log=shows_data,
            deep_iteration=False,
            offsets_decoder=False,
            transaction_log_decoder=False,
            cluster_metadata_decoder=decodes,
            key_decoder=None,
            value_decoder=None,
            skip_record_metadata=False,
            verify_index_only=False,
            index_sanity_check=False,
            max_message_size=1 << 20,
            max_bytes=None,
        )
        assert code == 0
        return capsys.readouterr().out

    return run


def test_the_journal(dump: Dump) -> None:
    lines = dump("__cluster_state/journal").splitlines()
    assert lines[1:3] == [
        "Journal of a cluster's state before KRaft",
        "zxid: 13 sessionId: 0 time: 1000 count: 1",
    ]
    assert any(line.startswith("| set path: /latest_producer_id_block dataSize: ") for line in lines)
    assert "stored_key" not in "".join(lines), "data are shown where they are asked for"
    assert "stored_key" in dump("__cluster_state/journal", shows_data=True)


def test_the_snapshot(dump: Dump) -> None:
    lines = dump("__cluster_state/snapshot", shows_data=True).splitlines()
    assert lines[1].startswith("Snapshot of a cluster's state before KRaft, zxid: 12 count: ")
    data = znodes.encode_cluster_id(CLUSTER_ID).decode()
    assert f"| path: /cluster/id czxid: 2 mzxid: 2 version: 0 dataSize: {len(data)} data: {data}" in lines


@pytest.mark.parametrize("name", ["journal", "snapshot"])
def test_what_was_set_aside(name: str, dump: Dump) -> None:
    assert "before KRaft" in dump(f"before-kraft.{name}", is_taken_over=True)


def test_what_the_cluster_begins_with(dump: Dump) -> None:
    out = dump("bootstrap.checkpoint", is_taken_over=True, decodes=True)
    for record in (
        "FEATURE_LEVEL",
        "TOPIC",
        "PARTITION",
        "CONFIG",
        "CLIENT_QUOTA",
        "USER_SCRAM",
        "ACCESS_CONTROL",
        "DELEGATION_TOKEN",
    ):
        assert f'"type":"{record}' in out
