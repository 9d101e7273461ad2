"""Log directories of a quorum that go from Apache Kafka 4.3.1 to Ottla, from Ottla to Apache Kafka, and back.

kafka-storage has formatted some, ``ottla format`` others. Each program runs the cluster for a while, changes everything that
metadata can hold, and leaves a log with snapshots; the other one finds all of it, and the records of its partitions.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic

from ottla.compat_tests.session import eventually
from ottla.log.files import METADATA_PARTITION_DIR
from ottla.security.authorizer_settings import STANDARD_AUTHORIZER

from .helpers.either_quorum import KAFKA, OTHER, OTTLA, PATIENCE_S, EitherQuorum
from .helpers.metadata_walk import MetadataWalk

pytestmark = pytest.mark.slow

PROPERTIES = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:ANONYMOUS",
    "metadata.log.max.record.bytes.between.snapshots": "1500",
}
BOTH = "broker,controller"


LAYOUTS: dict[str, tuple[dict[int, str], str]] = {
    "one node": ({1: BOTH}, "standalone"),
    "three nodes, killed": (dict.fromkeys((1, 2, 3), BOTH), "initial"),
    "static voters, apart": ({1: "controller", 2: "controller", 11: "broker", 12: "broker"}, "static"),
}


@contextlib.contextmanager
def quorum_of(folder: Path, layout: str, first: str, format_by: str) -> Iterator[EitherQuorum]:
    roles, voters = LAYOUTS[layout]
    quorum = EitherQuorum(folder, roles, first, voters=voters, properties=PROPERTIES, format_by=format_by)
    with contextlib.closing(quorum):
        quorum.start()
        yield quorum


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("first", [KAFKA, OTTLA])
def test_there_and_back(layout: str, first: str, tmp_path: Path) -> None:
    """The directories are formatted by the program that does not run them first."""
    with quorum_of(tmp_path / "nodes", layout, first, OTHER[first]) as quorum:
        walk = MetadataWalk(quorum)
        walk.change("first")
        before = walk.seen()
        for turn, program in (("second", OTHER[first]), ("third", first)):
            # The last of several nodes with both roles would look for a controller for half a minute.
            quorum.kill() if layout == "three nodes, killed" else quorum.stop()
            assert snapshots(quorum)
            for node in quorum.nodes.values():
                node.run_by(program)
            quorum.start()
            eventually(lambda before=before: walk.seen() == before, PATIENCE_S)
            walk.read_all()
            walk.change(turn)
            before = walk.seen()
        for node in quorum.nodes.values():
            check_log(node.log())


@pytest.mark.parametrize("program", [OTTLA, KAFKA])
def test_a_log_that_was_made_the_only_voters(program: str, tmp_path: Path) -> None:
    """``ottla cluster recover-quorum`` leaves a log on which either program goes on alone, and takes changes."""
    roles = dict.fromkeys((1, 2, 3), BOTH)
    quorum = EitherQuorum(tmp_path / "nodes", roles, OTHER[program], format_by=OTTLA)
    with contextlib.closing(quorum):
        quorum.start()
        walk = MetadataWalk(quorum)
        walk.make_topic("before")
        quorum.kill()
        first = quorum.nodes[1]
        command = [sys.executable, "-m", "ottla", "cluster", "recover-quorum", str(first.data_folders[0])]
        subprocess.run([*command, "--accept-data-loss"], check=True, capture_output=True)
        first.run_by(program)
        first.start()
        eventually(lambda: voter_ids(quorum) == [1], PATIENCE_S)
        walk.bootstrap = first.address
        walk.connect_again()
        topic = NewTopic("after", 1, replica_assignment=[[1]])
        eventually(lambda: was_made(walk, topic), PATIENCE_S)
        check_log(first.log())


def voter_ids(quorum: EitherQuorum) -> list[int]:
    described = quorum.described()
    return [] if described is None else [each.replica_id for each in described.current_voters]


def was_made(walk: MetadataWalk, topic: NewTopic) -> bool:
    """The broker itself may be fenced yet."""
    try:
        walk.admin.create_topics([topic])[topic.topic].result(PATIENCE_S)
    except KafkaException as error:
        return error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    return True


def snapshots(quorum: EitherQuorum) -> list[Path]:
    """Those of the metadata log, of every node, but for the first one of formatting."""
    found = [
        path
        for node in quorum.nodes.values()
        for path in (node.data_folders[0] / METADATA_PARTITION_DIR).glob("*.checkpoint")
    ]
    return [path for path in found if not path.name.startswith("0" * 20)]


def check_log(log: str) -> None:
    """Nothing that Ottla takes for an error, and nothing that Apache Kafka takes for damage."""
    wrong = re.search(r"Traceback| ERROR ottla|FATAL|Encountered .* fault", log)
    assert wrong is None, log[wrong.start() :][:3000]
