"""``ottla users`` in the log directory of a broker that is stopped, and what it refuses; at brokers it is shown by the page."""

from __future__ import annotations

from pathlib import Path

import pytest

import ottla
from ottla.cli.tools.access import users
from ottla.cli.tools.client import ClusterConnection
from ottla.cli.tools.running import ToolError, UsageError
from ottla.log.disk import OsDisk
from ottla.security.scram import ScramMechanism

from ...helpers.node_folders import Node

NOWHERE = ClusterConnection("127.0.0.1:1")
BOTH = {ScramMechanism.SHA_256: 4096, ScramMechanism.SHA_512: 4096}


@pytest.fixture
def password(tmp_path: Path) -> Path:
    file = tmp_path / "password"
    file.write_text("pencil\r\nnot this\n")
    return file


def add(place: users.UserStoreOptions, name: str, password: Path, *mechanisms: str, iterations: int = 4096) -> None:
    users.add(place, name, mechanisms or None, password_file=password, iterations=iterations)


def test_the_first_users_are_there_when_the_broker_starts(tmp_path: Path, password: Path) -> None:
    folder = tmp_path / "data"
    place = users.UserStoreOptions(NOWHERE, folder, None)
    add(place, "alice", password)
    add(place, "b c", password, "scram-sha-512", iterations=8192)
    add(place, "carol", password)
    users.remove(place, "carol", None)
    users.remove(place, "alice", ["SCRAM-SHA-256"])
    assert place.users().described() == {
        "alice": {ScramMechanism.SHA_512: 4096},
        "b c": {ScramMechanism.SHA_512: 8192},
    }
    before = place.users().described()
    with ottla.Broker(data_dir=folder) as broker:
        broker.create_topic("t")
        with pytest.raises(ToolError, match="is in use by a broker: name that by --bootstrap-server, or stop it"):
            add(place, "dora", password)
        here = users.UserStoreOptions(ClusterConnection(broker.bootstrap_servers), None, None)
        assert here.users().described() == before
        add(here, "dora", password)
    assert place.users().described()["dora"] == BOTH
    with ottla.Broker(data_dir=folder) as broker:
        assert broker.records("t") == []


def test_the_folder_that_a_configuration_names(tmp_path: Path, password: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"log.dirs={tmp_path}/one,{tmp_path}/two\n")
    add(users.UserStoreOptions(NOWHERE, None, file), "alice", password)
    assert users.UserStoreOptions(NOWHERE, tmp_path / "one", None).users().described() == {"alice": BOTH}
    with pytest.raises(UsageError, match="either --data-dir or --config"):
        users.UserStoreOptions(NOWHERE, tmp_path, file).users()


def test_a_node_that_is_its_own_quorum(tmp_path: Path, password: Path) -> None:
    assert Node(tmp_path).format(is_standalone=True, credentials=["SCRAM-SHA-256=[name=root,password=hush]"]) == 0
    place = users.UserStoreOptions(NOWHERE, None, tmp_path / "server.properties")
    add(place, "alice", password)
    add(place, "bob", password, "SCRAM-SHA-512", iterations=8192)
    users.remove(place, "alice", ["SCRAM-SHA-256"])
    assert place.users().described() == {
        "root": {ScramMechanism.SHA_256: 4096},
        "alice": {ScramMechanism.SHA_512: 4096},
        "bob": {ScramMechanism.SHA_512: 8192},
    }
    lock = OsDisk().lock(str(tmp_path / "a/.lock"))
    with pytest.raises(ToolError, match="is in use by a broker: name that by --bootstrap-server, or stop it"):
        add(place, "dora", password)
    lock.close()


def test_a_node_of_a_quorum_of_several(tmp_path: Path, password: Path) -> None:
    """Only its active controller changes the metadata."""
    voters = "3@h3:9093:nYt1jCRIqbKuPBvnxfZ46w,4@h4:9093:3Db5QLSqSZieL3rJBUUegA"
    assert Node(tmp_path).format(initial_controllers=voters) == 0
    with pytest.raises(
        ToolError, match="is of node 3 of a cluster with the controllers 3, 4: only a running controller"
    ):
        add(users.UserStoreOptions(NOWHERE, None, tmp_path / "server.properties"), "alice", password)


def test_what_is_refused(tmp_path: Path, password: Path) -> None:
    place = users.UserStoreOptions(NOWHERE, tmp_path / "data", None)
    with pytest.raises(UsageError, match="--mechanism takes SCRAM-SHA-256 or SCRAM-SHA-512, not PLAIN"):
        add(place, "alice", password, "PLAIN")
    with pytest.raises(ToolError, match="user alice has no password for SCRAM-SHA-256 and SCRAM-SHA-512"):
        users.remove(place, "alice", None)
    password.write_text("\n")
    with pytest.raises(ToolError, match="the password is empty"):
        add(place, "alice", password)
    (tmp_path / "data" / "meta.properties").write_text(
        "broker.id=1\ncluster.id=x\nversion=0\nzookeeper.connect=zk:2181\n"
    )
    with pytest.raises(
        ToolError, match=r"whose state is in the ZooKeeper zk:2181: name its server\.properties by --config"
    ):
        place.users().described()
