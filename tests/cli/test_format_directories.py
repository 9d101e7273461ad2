"""``ottla format``: what it leaves in a node's folders, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.log.metadata_snapshots import SnapshotReader
from ottla.wire.schema import uuid_to_text

from .helpers.node_folders import CLUSTER, Node

DIRECTORY = "nYt1jCRIqbKuPBvnxfZ46w"


def test_a_standalone_controller(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = Node(tmp_path)
    assert node.format(is_standalone=True, credentials=["SCRAM-SHA-256=[name=alice,password=hush]"]) == 0
    metas = [node.meta(0), node.meta(1)]
    assert [(meta.version, meta.broker_id, meta.cluster_id) for meta in metas] == [(1, 3, CLUSTER)] * 2
    assert metas[0].directory_id != metas[1].directory_id
    assert node.levels(0) == node.levels(1)
    assert next(iter(node.levels(0))) == "metadata.version"
    assert node.levels(0)["transaction.version"] == 2
    assert "kraft.version" not in node.levels(0)
    head = SnapshotReader(node.voters_file.read_bytes(), "voters").head
    assert head.kraft_version == 1
    assert head.voters is not None
    (voter,) = head.voters.voters
    assert (voter.voter_id, voter.voter_directory_id) == (3, metas[0].directory_id)
    assert [(e.name, e.host, e.port) for e in voter.endpoints] == [("CONTROLLER", "localhost", 9093)]
    assert capsys.readouterr().out.splitlines() == [
        f"Formatting dynamic metadata voter directory {node.folders[0]} with metadata.version 4.3-IV0.",
        f"Formatting data directory {node.folders[1]} with metadata.version 4.3-IV0.",
    ]


def test_first_voters_that_are_named(tmp_path: Path) -> None:
    node = Node(tmp_path)
    voters = f"4@h4:9093:{CLUSTER},3@h3:9093:{DIRECTORY}"
    assert node.format(initial_controllers=voters) == 0
    assert uuid_to_text(node.meta(0).directory_id or b"") == DIRECTORY
    head = SnapshotReader(node.voters_file.read_bytes(), "voters").head
    assert head.voters is not None
    assert [voter.voter_id for voter in head.voters.voters] == [3, 4]


@pytest.mark.parametrize(
    ("release", "levels"),
    [
        (
            None,
            {
                "metadata.version": 30,
                "eligible.leader.replicas.version": 1,
                "group.version": 1,
                "share.version": 1,
                "transaction.version": 2,
            },
        ),
        ("4.0", {"metadata.version": 25, "group.version": 1, "transaction.version": 2}),
        ("3.9", {"metadata.version": 21}),
    ],
    ids=["the newest release", "4.0, which begins with groups of KIP-848", "3.9, which has none"],
)
def test_a_cluster_begins_with_the_features_of_its_controller(
    tmp_path: Path, release: str | None, levels: dict[str, int]
) -> None:
    node = Node(tmp_path, process_roles="controller", listeners="CONTROLLER://:9093")
    assert node.format(is_standalone=True, release=release) == 0
    assert node.levels(0) == levels


def test_a_broker_alone_decides_nothing_of_its_cluster(tmp_path: Path) -> None:
    node = Node(tmp_path, process_roles="broker", listeners="PLAINTEXT://127.0.0.1:9092")
    assert node.format(has_no_initial_controllers=True, features=["eligible.leader.replicas.version=0"]) == 0
    assert node.levels(0) == {
        "metadata.version": 30,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }


def test_a_broker_joins_with_features_turned_off(tmp_path: Path) -> None:
    node = Node(tmp_path, process_roles="broker", listeners="PLAINTEXT://127.0.0.1:9092")
    features = ["group.version=0", "share.version=0"]
    assert node.format(has_no_initial_controllers=True, features=features, release="4.2") == 0
    assert node.levels(0) == {
        "metadata.version": 29,
        "eligible.leader.replicas.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }
    assert not node.voters_file.exists()


def test_the_metadata_log_in_a_folder_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = Node(tmp_path, metadata_log_dir=str(tmp_path / "m"))
    node.folders.insert(0, tmp_path / "m")
    assert node.format(is_standalone=True) == 0
    assert node.voters_file.exists()
    assert not (tmp_path / "a" / "__cluster_metadata-0").exists()
    assert [node.meta(slot).broker_id for slot in range(3)] == [3, 3, 3]
    assert len({node.meta(slot).directory_id for slot in range(3)}) == 3
    assert f"Formatting dynamic metadata voter directory {tmp_path / 'm'} with" in capsys.readouterr().out


def test_the_metadata_log_in_a_data_folder_that_is_named_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = Node(tmp_path, metadata_log_dir=f"{tmp_path}/./b/")
    assert node.format(is_standalone=True) == 0
    assert (node.folders[1] / node.voters_file.relative_to(node.folders[0])).exists()
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_new_cluster_gets_an_id(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = Node(tmp_path)
    assert node.format(cluster_id=None, is_standalone=True) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"The cluster's id is {node.meta(0).cluster_id}."


def test_folders_that_are_formatted_already(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = Node(tmp_path)
    assert node.format(is_standalone=True) == 0
    before = node.meta(0)
    assert node.format(is_standalone=True) == 1
    assert "is already formatted. Use --ignore-formatted" in capsys.readouterr().err
    (node.folders[1] / "meta.properties").unlink()
    assert node.format(is_standalone=True, ignores_formatted=True) == 0
    assert node.format(is_standalone=True, ignores_formatted=True) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "All of the log directories are already formatted."
    assert node.meta(0) == before
    assert node.format(cluster_id=DIRECTORY, is_standalone=True, ignores_formatted=True) == 1
    assert f"Expected {DIRECTORY}, but read {CLUSTER}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("properties", "options", "why"),
    [
        ({"process_roles": ""}, {}, "no process.roles"),
        ({"node_id": ""}, {}, "no node.id"),
        ({"controller_listener_names": ""}, {}, "no controller.listener.names"),
        ({}, {}, "you must specify one of the following: --standalone"),
        (
            {"controller_quorum_voters": "3@h:9093"},
            {"is_standalone": True},
            "You cannot specify controller.quorum.voters",
        ),
        ({"process_roles": "broker"}, {"is_standalone": True}, "only use --standalone on a controller"),
        ({}, {"is_standalone": True, "release": "5.0"}, "Unknown metadata.version '5.0'"),
        ({}, {"is_standalone": True, "features": ["a"]}, "Can't parse feature=level string a"),
        ({}, {"is_standalone": True, "features": ["metadata.version=6"]}, "from 7 to 30"),
        ({}, {"is_standalone": True, "features": ["group.version=2"]}, "No feature:group.version with feature level 2"),
        (
            {},
            {"is_standalone": True, "features": ["streams.version=1"]},
            "streams.version cannot be 1: a controller of Ottla supports it up to level 0",
        ),
        (
            {},
            {"is_standalone": True, "features": ["metadata.version=20"], "release": "4.0"},
            "Use --release-version instead",
        ),
        (
            {},
            {"is_standalone": True, "release": "3.4", "credentials": ["SCRAM-SHA-256=[name=a,password=hush]"]},
            "SCRAM is only supported in metadata.version 3.5-IV2 or later",
        ),
        ({}, {"is_standalone": True, "credentials": ["x"]}, "Failed to find equals sign"),
        ({}, {"initial_controllers": " "}, "No voters given"),
        ({}, {"initial_controllers": "3"}, "No @ found"),
        ({}, {"initial_controllers": "x@h:1:y"}, "Failed to parse node id"),
        ({}, {"initial_controllers": "3@h:1:y"}, "Failed to parse address and directory id"),
        ({}, {"initial_controllers": f"3@h:1:{CLUSTER},3@h:2:{CLUSTER}"}, "Node id 3 was specified more than once"),
        ({"process_roles": "king"}, {}, "String must be one of: broker, controller"),
    ],
)
def test_what_is_refused_formats_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], properties: dict[str, str], options: dict[str, object], why: str
) -> None:
    node = Node(tmp_path, **properties)
    assert node.format(**options) == 1
    assert why in capsys.readouterr().err
    assert not any(folder.exists() for folder in node.folders)
