"""Kafka's tools at Apache Kafka's brokers on controllers of Ottla, and on those of Apache Kafka: they say the same.

Ids, addresses, times and offsets of the metadata log are left out of the comparison. What only reads is asked for a while, at
both, until they agree: brokers learn of a change a moment later.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.compat_tests.session import eventually
from ottla.log.checkpoints import read_meta_properties
from ottla.log.disk import OsDisk
from ottla.log.files import METADATA_PARTITION_DIR
from ottla.security.authorizer_settings import STANDARD_AUTHORIZER
from ottla.wire.schema import uuid_to_text

from ..java.warm_tools import Outcome, WarmTools
from .helpers.either_quorum import KAFKA, OTHER, OTTLA, EitherQuorum

pytestmark = pytest.mark.slow

PATIENCE_S = 20.0
PROPERTIES = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:ANONYMOUS",
    "delegation.token.secret.key": "the brokers' secret",
    "metadata.log.max.record.bytes.between.snapshots": "4000",
}
FILES = {
    "moves.json": '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[12]}]}',
    "topics.json": '{"version":1,"topics":[{"topic":"a"}]}',
    "elections.json": '{"partitions":[{"topic":"b","partition":0}]}',
    "offsets.json": '{"version":1,"partitions":[{"topic":"d","partition":0,"offset":5}]}',
    "none.properties": "",
}
WORDS = {
    "S": "--bootstrap-server {server}",
    "C": "--bootstrap-controller {controller}",
    "B": "--command-property bootstrap.servers={server}",
    "P": "--topic d --num-records 30 --record-size 10 --throughput -1",
}
"""What calls have in braces; the rest is of a cluster."""
CALLS = """
metadata-quorum {S} describe --status
metadata-quorum {C} describe --status
metadata-quorum {S} describe --replication
metadata-quorum {C} describe --replication --human-readable
metadata-quorum {C} remove-controller --controller-id 9 --controller-directory-id AAAAAAAAAAAAAAAAAAAAZw
metadata-quorum {S} remove-controller --controller-id 9 --controller-directory-id AAAAAAAAAAAAAAAAAAAAZw
metadata-quorum {S} remove-controller --controller-id 1 --controller-directory-id AAAAAAAAAAAAAAAAAAAAZw
metadata-quorum {S} remove-controller --dry-run --controller-id 9 --controller-directory-id AAAAAAAAAAAAAAAAAAAAZw
features {S} describe
features {C} describe
features {S} upgrade --feature nonsense.version=1
features {S} upgrade --feature metadata.version=31
features {S} upgrade --dry-run --feature transaction.version=2
features {S} downgrade --feature eligible.leader.replicas.version=0 --dry-run
features {S} downgrade --feature eligible.leader.replicas.version=0
features {S} upgrade --feature eligible.leader.replicas.version=1
features {C} disable --feature eligible.leader.replicas.version --dry-run
features {S} disable --feature eligible.leader.replicas.version
features {C} upgrade --feature eligible.leader.replicas.version=1
features {S} downgrade --metadata 4.0
features {S} downgrade --unsafe --metadata 4.0
features {S} downgrade --release-version 3.9
features {S} upgrade --feature kraft.version=1
features {S} downgrade --feature kraft.version=0
features {S} disable --feature transaction.version
features {C} upgrade --feature transaction.version=2
features {S} upgrade --feature group.version=2
features {S} upgrade --feature group.version=0
features {S} downgrade --dry-run --feature group.version=0
features {S} downgrade --feature group.version=0
features {S} describe
features {S} upgrade --feature group.version=1
features {S} disable --feature group.version
features {C} upgrade --feature group.version=1
features {S} feature-dependencies --feature group.version=1
features {S} version-mapping --release-version 4.2
features {S} feature-dependencies --feature transaction.version=2
cluster cluster-id {S}
cluster cluster-id {C}
cluster list-endpoints {S}
cluster list-endpoints {S} --include-fenced-brokers
cluster list-endpoints {C}
cluster unregister {S} --id 77
cluster unregister {C} --id 78
topics {S} --create --topic a --replica-assignment 11:12,12:11 --config retention.ms=3600000
topics {S} --create --topic b --replica-assignment 11,12
topics {S} --create --topic b --partitions 2
topics {S} --create --if-not-exists --topic b
topics {S} --create --topic d --replica-assignment 12
topics {S} --create --topic r --partitions 4 --replication-factor 2
topics {S} --delete --topic r
topics {S} --create --topic c --replication-factor 3
topics {S} --create --topic c --partitions 0
topics {S} --create --topic a.b --partitions 1
topics {S} --create --topic a_b --partitions 1
topics {S} --create --topic bad --config nonsense=1
topics {S} --create --topic bad --config retention.ms=x
topics {S} --create --topic bad --replica-assignment 11:13
topics {S} --create --topic bad --replica-assignment 11,11:12
topics {S} --alter --topic b --partitions 3 --replica-assignment 11,12,11
topics {S} --alter --topic b --partitions 2
topics {S} --alter --topic a --partitions 3 --replica-assignment 11:12,12:11,12:11
topics {S} --describe --topic a
topics {S} --describe --under-replicated-partitions
topics {S} --describe --topics-with-overrides
topics {S} --list
topics {S} --delete --topic a_b
topics {S} --delete --topic a.b
topics {S} --delete --topic nonsense
configs {S} --describe --entity-type topics --entity-name a
configs {S} --describe --all --entity-type topics --entity-name a
configs {S} --alter --entity-type topics --entity-name a --add-config max.message.bytes=20000,min.insync.replicas=2
configs {S} --alter --entity-type topics --entity-name a --add-config min.insync.replicas=x
configs {S} --alter --entity-type topics --entity-name a --delete-config max.message.bytes,min.insync.replicas
configs {S} --alter --entity-type topics --entity-name nonsense --add-config max.message.bytes=20000
configs {S} --describe --entity-type topics --entity-name a
configs {S} --alter --entity-type brokers --entity-name 11 --add-config log.cleaner.threads=2
configs {S} --alter --entity-type brokers --entity-default --add-config message.max.bytes=2000000
configs {S} --alter --entity-type brokers --entity-default --add-config min.insync.replicas=1
configs {S} --alter --entity-type brokers --entity-default --delete-config min.insync.replicas
configs {S} --alter --entity-type brokers --entity-name 11 --add-config min.insync.replicas=2
configs {S} --alter --entity-type brokers --entity-name 11 --add-config log.dirs=/nowhere
configs {S} --describe --entity-type brokers --entity-name 11
configs {S} --describe --entity-type brokers --entity-default
configs {C} --describe --entity-type brokers --entity-default
configs {C} --describe --entity-type brokers --entity-name 1
configs {C} --describe --entity-type brokers --entity-name 11
configs {C} --alter --entity-type brokers --entity-name 1 --add-config log.cleaner.threads=3
configs {C} --describe --entity-type brokers --entity-name 1
configs {C} --alter --entity-type brokers --entity-name 1 --delete-config log.cleaner.threads
configs {C} --alter --entity-type brokers --entity-default --add-config nonsense=2
configs {C} --describe --entity-type topics --entity-name a
configs {C} --describe --entity-type topics
configs {S} --alter --entity-type broker-loggers --entity-name 11 --add-config kafka.log=DEBUG
configs {S} --alter --entity-type broker-loggers --entity-name 11 --add-config kafka.log=LOUD
configs {S} --alter --entity-type broker-loggers --entity-name 11 --delete-config kafka.log
configs {C} --alter --entity-type broker-loggers --entity-name 1 --add-config org.apache.kafka.controller=DEBUG
configs {S} --alter --entity-type users --entity-name u --add-config producer_byte_rate=1000
configs {S} --alter --entity-type users --entity-name u --add-config SCRAM-SHA-256=[iterations=4096,password=p]
configs {S} --alter --entity-type users --entity-name u --add-config SCRAM-SHA-512=[iterations=1,password=p]
configs {S} --alter --entity-type users --entity-default --add-config request_percentage=50
configs {S} --alter --entity-type users --entity-name u --entity-type clients --entity-name c --add-config consumer_byte_rate=5
configs {S} --alter --entity-type clients --entity-default --add-config consumer_byte_rate=6
configs {S} --alter --entity-type clients --entity-name c --add-config nonsense=6
configs {S} --alter --entity-type ips --entity-name 127.0.0.9 --add-config connection_creation_rate=9
configs {S} --describe --entity-type users
configs {S} --describe --entity-type users --entity-name u
configs {S} --describe --entity-type clients
configs {S} --describe --entity-type ips
configs {S} --alter --entity-type users --entity-name u --delete-config SCRAM-SHA-256
configs {S} --alter --entity-type users --entity-name u --delete-config SCRAM-SHA-256
configs {S} --alter --entity-type groups --entity-name g --add-config consumer.session.timeout.ms=50000
configs {S} --alter --entity-type groups --entity-name g --add-config consumer.session.timeout.ms=1
configs {S} --describe --entity-type groups --entity-name g
configs {S} --alter --entity-type client-metrics --entity-name m --add-config interval.ms=5000,metrics=org.apache.kafka.
configs {S} --alter --entity-type client-metrics --entity-name m --add-config interval.ms=5
configs {S} --describe --entity-type client-metrics --entity-name m
client-metrics {S} --list
client-metrics {S} --describe
client-metrics {S} --alter --name n --metrics x. --interval 1000
client-metrics {S} --delete --name n
acls {S} --add --allow-principal User:alice --operation Read --topic a
acls {S} --add --allow-principal User:alice --producer --topic p --resource-pattern-type prefixed
acls {S} --add --deny-principal User:bob --allow-host 10.0.0.1 --operation All --cluster
acls {C} --add --allow-principal User:carol --consumer --topic a --group g
acls {C} --list
acls {S} --list --topic a
acls {S} --list --principal User:alice
acls {C} --remove --force --allow-principal User:carol --consumer --topic a --group g
acls {S} --remove --force --topic nonsense
acls {S} --list
producer-perf-test {B} {P}
producer-perf-test {B} --command-property transactional.id=t --transaction-duration-ms 10000 {P}
get-offsets {S} --topic d
get-offsets {S} --topic d --time earliest
get-offsets {S} --topic nonsense
delete-records {S} --offset-json-file {folder}/offsets.json
get-offsets {S} --topic d --time earliest
transactions {S} list
transactions {S} describe --transactional-id t
transactions {S} describe --transactional-id nonsense
transactions {S} describe-producers --topic d --partition 0
transactions {S} find-hanging --broker-id 11
log-dirs {S} --describe --topic-list a,d
log-dirs {S} --describe --broker-list 12 --topic-list a
broker-api-versions {S}
broker-api-versions {C}
delegation-tokens {S} --create --max-life-time-period -1 --command-config {folder}/none.properties
delegation-tokens {S} --describe --command-config {folder}/none.properties
reassign-partitions {S} --generate --topics-to-move-json-file {folder}/topics.json --broker-list 12
reassign-partitions {S} --execute --reassignment-json-file {folder}/moves.json --throttle 1000000
reassign-partitions {S} --list
reassign-partitions {S} --verify --reassignment-json-file {folder}/moves.json
reassign-partitions {S} --cancel --reassignment-json-file {folder}/moves.json
reassign-partitions {C} --list
reassign-partitions {C} --execute --reassignment-json-file {folder}/moves.json
leader-election {S} --election-type preferred --all-topic-partitions
leader-election {S} --election-type preferred --topic a --partition 1
leader-election {S} --election-type unclean --topic a --partition 1
leader-election {S} --election-type preferred --path-to-json-file {folder}/elections.json
leader-election {S} --election-type preferred --topic nonsense --partition 1
groups {S} --list
consumer-groups {S} --list
consumer-groups {S} --reset-offsets --to-earliest --topic d --group g --execute
consumer-groups {S} --describe --group g
consumer-groups {S} --describe --all-groups --state
consumer-groups {S} --delete --group g
topics {S} --describe --exclude-internal
topics {S} --delete --topic a
topics {S} --list
storage info --config {config}
metadata-shell --snapshot {log} ls /
metadata-quorum {S} --command-config {config-2} add-controller --dry-run
metadata-quorum {S} --command-config {config-2} add-controller
metadata-quorum {C} --command-config {config-2} add-controller
metadata-quorum {S} describe --status
metadata-quorum {C} describe --replication
metadata-quorum {C} remove-controller --controller-id 2 --controller-directory-id {directory-2}
metadata-quorum {S} describe --status
"""
READS = re.compile(r"--describe|--list| describe|list-endpoints|get-offsets|--verify| list\b|find-hanging")
HIDDEN = (
    (r"\n\tat .*|\n\t\.\.\. \d+ more", ""),
    (r"(?<![\w-])[\w-]{22}(?![\w-])", "<uuid>"),
    (r"\b\d{13}\b", "<time>"),
    (r"\d+ ms ago", "<time>"),
    (r"(HighWatermark|MaxFollowerLag|MaxFollowerLagTimeMs|LeaderEpoch): +-?\d+", r"\1: <n>"),
    (r"Epoch: \d+", "Epoch: <n>"),
    (r"(?m)^(\d+ +\t<uuid>\t)\d+ +\t\d+ +\t", r"\1"),
    (r"(?m)^Feature: (share|streams)\.version.*\n", ""),
    (r"30 records sent.*", "30 records sent"),
    (r'"size":\d+', '"size":<n>'),
    (r"(?m)^\d+ +\t(\d+ +\t-1)", r"<producer id>\t\1"),
    (r"<port of \d+> +\(\d+\)", "<coordinator>"),
)
"""What two clusters do not share. Controllers of Ottla do not name features that Ottla lacks."""
ONE_OF_SEVERAL = re.compile(r"\{[^{}]*\}|ReplicaKey\([^()]*\)")
"""Of voters and observers, which come in no order."""


class Pair:
    """Two clusters of the same form, and the tools."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, content in FILES.items():
            (folder / name).write_text(content)
        self.tools = WarmTools("", folder)
        roles = {1: "controller", 2: "controller", 11: "broker", 12: "broker"}
        self.clusters = {}
        for program in (KAFKA, OTTLA):
            programs = {1: program, 2: program, 11: KAFKA, 12: KAFKA}
            self.clusters[program] = EitherQuorum(
                folder / program, roles, programs, voters="standalone", properties=PROPERTIES, format_by=OTHER[program]
            )

    def start(self) -> None:
        """Controller 2 is none of the voters."""
        for cluster in self.clusters.values():
            cluster.format(cluster.nodes[2], "--no-initial-controllers")
            cluster.start()

    def run(self, program: str, call: str) -> Outcome:
        """The outcome of a call at one of them, without what is its own."""
        cluster = self.clusters[program]
        log = cluster.nodes[1].data_folders[0] / METADATA_PARTITION_DIR / "00000000000000000000.log"
        second = read_meta_properties(OsDisk(), str(cluster.nodes[2].data_folders[0]))
        assert second is not None and second.directory_id is not None
        own = {
            "server": cluster.bootstrap,
            "controller": cluster.bootstrap_controllers,
            "folder": str(self.folder),
            "config": str(cluster.nodes[1].file),
            "config-2": str(cluster.nodes[2].file),
            "directory-2": uuid_to_text(second.directory_id),
            "log": str(log),
        }
        outcome = self.tools.run(*(word.format(**own) for word in shlex.split(call.format(**WORDS, **_braced(own)))))
        return Outcome(outcome.code, self._hidden(outcome.printed, cluster))

    def _hidden(self, text: str, cluster: EitherQuorum) -> str:
        for node in cluster.nodes.values():
            text = text.replace(str(node.port), f"<port of {node.node_id}>")
            text = text.replace(node.controller_address.rpartition(":")[2], f"<controller port of {node.node_id}>")
        text = text.replace(str(cluster.folder), "<folder>")
        for pattern, instead in HIDDEN:
            text = re.sub(pattern, instead, text)
        return "\n".join(sorted(map(_ordered, text.splitlines())))

    def close(self) -> None:
        self.tools.close()
        for cluster in self.clusters.values():
            cluster.close()


def _ordered(line: str) -> str:
    found = iter(sorted(ONE_OF_SEVERAL.findall(line)))
    return ONE_OF_SEVERAL.sub(lambda _: next(found), line)


def _braced(own: dict[str, str]) -> dict[str, str]:
    """For a second round of formatting."""
    return {name: f"{{{name}}}" for name in own}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    pair = Pair(tmp_path_factory.mktemp("pair"))
    try:
        pair.start()
        yield pair
    finally:
        pair.close()


@pytest.mark.parametrize("call", CALLS.strip().splitlines())
def test_they_say_the_same(call: str, pair: Pair) -> None:
    outcomes: list[Outcome] = []

    def are_alike() -> bool:
        outcomes[:] = [pair.run(program, call) for program in (KAFKA, OTTLA)]
        return outcomes[0] == outcomes[1]

    if READS.search(call):
        try:
            eventually(are_alike, PATIENCE_S)
        except AssertionError:
            pass  # the difference is shown below
    else:
        are_alike()
    by_kafka, by_ottla = outcomes
    assert by_ottla == by_kafka


# --- where the two differ, or say what is their own -----------------------------------------------------------------------


def at_ottla(pair: Pair, call: str, code: int = 0) -> str:
    outcome = pair.run(OTTLA, call)
    assert outcome.code == code, outcome.printed
    return outcome.printed


def copied_metadata(pair: Pair, folder: Path) -> tuple[Path, Path]:
    """The log and the newest snapshot of Ottla's controller, as they are at the moment."""
    found = pair.clusters[OTTLA].nodes[1].data_folders[0] / METADATA_PARTITION_DIR
    copies = []
    for path in (found / "00000000000000000000.log", max(found.glob("*.checkpoint"))):
        copies.append(folder / path.name)
        copies[-1].write_bytes(path.read_bytes())
    log, snapshot = copies
    return log, snapshot


def test_dump_log(pair: Pair, tmp_path: Path) -> None:
    """Of both it can print every record."""
    for path in copied_metadata(pair, tmp_path):
        outcome = pair.tools.run("dump-log", "--cluster-metadata-decoder", "--files", str(path))
        assert outcome.code == 0
        assert "isvalid: true" in outcome.printed
        for wrong in ("isvalid: false", "Error at", "Exception", "Mismatches"):
            assert wrong not in outcome.printed
        assert '"type":"REGISTER_BROKER_RECORD"' in outcome.printed


def test_features_that_ottla_lacks(pair: Pair) -> None:
    """They cannot be turned on, so an upgrade names its features, and not a release."""
    for call in (
        "features {S} upgrade --feature streams.version=1",
        "features {S} upgrade --feature streams.version=1 --dry-run",
        "features {C} upgrade --release-version 4.3",
    ):
        assert "Local controller 1 does not support this feature." in at_ottla(pair, call, 1)
    assert "metadata.version was upgraded to 30." in at_ottla(
        pair, "features {C} upgrade --feature metadata.version=30"
    )


def test_configs_of_a_controller(pair: Pair) -> None:
    """All of them, from where they come; and log levels, of which a controller of Ottla tells nothing."""
    all_ = at_ottla(pair, "configs {C} --describe --all --entity-type brokers --entity-name 1")
    assert "node.id=1 sensitive=false synonyms={STATIC_BROKER_CONFIG:node.id=1" in all_
    loggers = at_ottla(pair, "configs {C} --describe --entity-type broker-loggers --entity-name 1")
    assert loggers.strip() == "Dynamic configs for broker-logger 1 are:"


def test_a_broker_that_is_gone_is_unregistered(pair: Pair) -> None:
    """At both alike: it is fenced, then no more there."""
    for cluster in pair.clusters.values():
        cluster.nodes[12].kill()
    fenced = "cluster list-endpoints {S} --include-fenced-brokers"
    for program in (KAFKA, OTTLA):
        eventually(lambda program=program: "fenced" in _row(pair, program, fenced, 12), PATIENCE_S)
    for call in (
        "cluster unregister {S} --id 12",
        fenced,
        "cluster unregister {S} --id 12",
        "topics {S} --describe --topic d",
    ):
        test_they_say_the_same(call, pair)
    assert _row(pair, OTTLA, fenced, 12) == ""


def _row(pair: Pair, program: str, call: str, broker_id: int) -> str:
    lines = pair.run(program, call).printed.splitlines()
    return next((line for line in lines if line.startswith(f"{broker_id} ")), "")
