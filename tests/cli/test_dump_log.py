"""``ottla dump-log``: the metadata of a lone broker, before a take-over and after it; and paths that are wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.cli import dump_log
from ottla.compat_tests.raw.requests import batch
from ottla.controller.zookeeper.nodes import znodes
from ottla.log.disk import OsDisk

from ..broker.helpers.dying_disk import DyingDisk
from ..broker.helpers.old_directories import own, take_over, write_state
from ..controller.helpers.old_state import CLUSTER_ID, rich_state
from .helpers.command import run_alone

Dump = Callable[..., str]


@pytest.fixture
def dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Dump:
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
            share_group_state_decoder=False,
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


SEGMENT = "00000000000000000000.log"
NAMELESS = "its name has to be the first offset that the file may hold, as in 00000000000000000000.log"


@pytest.mark.slow
def test_files_that_are_not_there(tmp_path: Path) -> None:
    for name in ("nope.log", SEGMENT, "nope.index", "0.timeindex", "nope.txnindex", "nope.snapshot"):
        status, printed, errors = run_alone("dump-log", "--files", tmp_path / name)
        assert (status, errors) == (
            1,
            f"{tmp_path / name}: No such file or directory\n".replace("0.timeindex", "0.log"),
        )
        assert printed.startswith(f"Dumping {tmp_path / name}\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["orders.log", "1_0.log", "orders.index", "x1.timeindex", "copy of 0.txnindex"])
def test_name_that_is_no_offset(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    assert run_alone("dump-log", "--files", tmp_path / name) == (
        1,
        f"Dumping {tmp_path / name}\n",
        f"{tmp_path / name}: {NAMELESS}\n",
    )


@pytest.mark.slow
def test_offset_without_twenty_digits(tmp_path: Path) -> None:
    (tmp_path / "7.log").write_bytes(batch(b"a"))
    status, printed, errors = run_alone("dump-log", "--files", tmp_path / "7.log")
    assert (status, errors) == (0, "") and printed.splitlines()[1] == "Log starting offset: 7"


@pytest.mark.slow
def test_folders(tmp_path: Path) -> None:
    (tmp_path / SEGMENT).mkdir()
    assert run_alone("dump-log", "--files", tmp_path) == (
        0,
        f"Dumping {tmp_path}\n",
        f"Ignoring unknown file {tmp_path}\n",
    ), "as Apache Kafka's tool"
    status, _, errors = run_alone("dump-log", "--files", tmp_path / SEGMENT)
    assert (status, errors) == (1, f"{tmp_path / SEGMENT}: Is a directory\n")
