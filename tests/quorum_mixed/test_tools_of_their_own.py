"""Tools of Apache Kafka that need a process of their own, on a broker of Apache Kafka and a controller of Ottla."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.compat_tests.java.tools import MAIN_CLASSES, SHORT_LIVED, java_command
from ottla.compat_tests.session import eventually
from ottla.log.files import METADATA_PARTITION_DIR
from ottla.metadata.image import ClusterImage
from ottla.security.authorizer_settings import STANDARD_AUTHORIZER
from ottla.wire.records import iter_batches

from .helpers.either_quorum import KAFKA, OTTLA, EitherQuorum
from .helpers.metadata_walk import MetadataWalk
from .helpers.shell_tree import image_of_snapshot, replayed, sections, sections_of

pytestmark = pytest.mark.slow

PATIENCE_S = 30.0
PROPERTIES = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:ANONYMOUS",
    "metadata.log.max.record.bytes.between.snapshots": "1500",
}


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EitherQuorum]:
    """It has gone through everything."""
    folder = tmp_path_factory.mktemp("quorum") / "nodes"
    roles, programs = {1: "controller", 11: "broker"}, {1: OTTLA, 11: KAFKA}
    quorum = EitherQuorum(folder, roles, programs, voters="standalone", properties=PROPERTIES, format_by=OTTLA)
    with contextlib.closing(quorum):
        quorum.start()
        MetadataWalk(quorum).change("a")
        yield quorum


def test_metadata_shell(quorum: EitherQuorum, tmp_path: Path) -> None:
    """Of Ottla's log and snapshot it prints the image that Ottla has of them."""
    found = quorum.nodes[1].data_folders[0] / METADATA_PARTITION_DIR
    log, snapshot = (tmp_path / path.name for path in (found / f"{0:020}.log", max(found.glob("*.checkpoint"))))
    for copy in (log, snapshot):
        copy.write_bytes((found / copy.name).read_bytes())
    check_shell_prints(log, replayed(iter_batches(log.read_bytes())))
    check_shell_prints(snapshot, image_of_snapshot(snapshot))


def check_shell_prints(path: Path, image: ClusterImage) -> None:
    """The shell reads a file in the background, and may print before it has read all: it is asked again."""
    found: list[dict[str, list[str]]] = []
    command = [*java_command(path.parent, *SHORT_LIVED), MAIN_CLASSES["metadata-shell"]]
    command += ["--snapshot", str(path), "tree", "image"]

    def is_printed() -> bool:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        found[:] = [sections_of(done.stdout)]
        return found == [sections(image)]

    with contextlib.suppress(AssertionError):
        eventually(is_printed, PATIENCE_S)
    assert found == [sections(image)]


def test_replica_verification(quorum: EitherQuorum, tmp_path: Path) -> None:
    """It goes on until it is ended."""
    command = [*java_command(tmp_path, *SHORT_LIVED), MAIN_CLASSES["replica-verification"]]
    command += ["--broker-list", quorum.bootstrap, "--topics-include", "a-kept"]
    command += ["--report-interval-ms", "50", "--max-wait-ms", "50"]
    printed = tmp_path / "printed"
    with printed.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            eventually(lambda: "max lag is 0 for partition a-kept-" in printed.read_text(), PATIENCE_S)
        finally:
            process.kill()
