"""Kafka 4.3's tools on three brokers, in one JVM: what is wrong with a cluster, elections, settings, what is on the disks."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import ottla
from ottla.security.authorizer_settings import STANDARD_AUTHORIZER
from ottla.testing.cluster import Cluster

from .warm_tools import WarmTools

pytestmark = pytest.mark.slow
SESSION_S = 1.5
ALL = {1, 2, 3}
AUTHORIZED = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}


def test_kafkas_tools_on_three_brokers(tmp_path: Path) -> None:
    """One test, because a JVM is dear, and what one part leaves behind is what the next one begins with."""
    with ottla.Cluster(3) as cluster:
        tools = WarmTools(cluster.bootstrap_servers, tmp_path)
        try:
            what_is_wrong_with_a_cluster(cluster, tools)
            elections(cluster, tools)
            brokers_and_their_disks(cluster, tools)
            settings(tools)
            with ottla.Broker(properties=AUTHORIZED) as broker:
                access_rules(tools.at(broker.bootstrap_servers))
        finally:
            tools.close()


def preferred_of(tools: WarmTools, topic: str) -> dict[str, str]:
    """The first replica by partition."""
    described = tools("topics", "--describe", "--topic", topic)
    return {f"{topic}-{number}": first for number, first in re.findall(r"Partition: (\d+).*?Replicas: (\d)", described)}


def miss(cluster: Cluster, *brokers: int) -> None:
    """Brokers are killed, and their sessions end."""
    for broker in brokers:
        cluster.kill(broker)
    cluster.clock.advance(seconds=SESSION_S)
    cluster.wait_in_sync("t")


def what_is_wrong_with_a_cluster(cluster: Cluster, tools: WarmTools) -> None:
    tools("topics", "--create", "--topic", "t", "--partitions", "3", "--config", "min.insync.replicas=2")
    for number in range(3):
        tools("topics", "--create", "--topic", f"at-{number + 1}", "--replica-assignment", str(number + 1))
    cluster.wait_in_sync("t")
    asked = [f"--{kind}-partitions" for kind in ("under-replicated", "unavailable", "under-min-isr", "at-min-isr")]
    under_replicated, unavailable, under_min, at_min = asked
    assert {tuple(isr) for _, isr in tools.described("--topic", "t").values()} == {(1, 2, 3)}
    alone = {f"at-{number}-0" for number in ALL}
    assert [tools.described(option).keys() for option in asked] == [set(), set(), set(), alone]
    of_t = {f"t-{number}" for number in range(3)}

    miss(cluster, 3)  # the last one in sync is not in sync any more (KIP-966)
    assert tools.described(under_replicated).keys() == of_t | {"at-3-0"}
    assert tools.described(unavailable) == {"at-3-0": ("none", set())}
    assert tools.described(at_min).keys() == of_t | alone - {"at-3-0"}

    miss(cluster, 2)
    assert {name: leader for name, (leader, _) in tools.described(under_min).items()} == {
        **dict.fromkeys(of_t, "1"),
        "at-2-0": "none",
        "at-3-0": "none",
    }
    assert tools.described(unavailable).keys() == {"at-2-0", "at-3-0"}


def elections(cluster: Cluster, tools: WarmTools) -> None:
    """Broker 1 is alone so far."""
    kind = "--election-type"
    failed = tools("leader-election", kind, "preferred", "--all-topic-partitions", code=1)
    assert failed.count("PreferredLeaderNotAvailableException") >= 2 and "could not be elected" in failed.lower(), (
        failed
    )
    cluster.kill(1)
    cluster.brokers[2].start()
    cluster.brokers[3].start()
    cluster.clock.advance(seconds=SESSION_S)
    assert tools.described("--topic", "t", "--unavailable-partitions").keys() == {"t-0", "t-1", "t-2"}
    done = tools("leader-election", kind, "unclean", "--topic", "t", "--partition", "0")
    assert "Successfully completed leader election (UNCLEAN) for partitions t-0" in done
    cluster.brokers[1].start()
    cluster.wait_in_sync("t")
    preferred = {name: int(first) for name, first in preferred_of(tools, "t").items()}
    others = [name for name in preferred if cluster.leader_of("t", int(name[-1])) != preferred[name]]
    done = tools("leader-election", kind, "preferred", "--all-topic-partitions")
    assert others and "Successfully completed leader election (PREFERRED)" in done
    assert all(name in done for name in others)
    assert {f"t-{number}": cluster.leader_of("t", number) for number in range(3)} == preferred
    again = tools("leader-election", kind, "preferred", "--topic", "t", "--partition", "0")
    assert "Valid replica already elected for partitions t-0" in again


def brokers_and_their_disks(cluster: Cluster, tools: WarmTools) -> None:
    versions = tools("broker-api-versions")
    for broker in cluster.brokers.values():
        assert f"{broker.bootstrap_servers} (id: {broker.broker_id} rack: null isFenced: false) -> (" in versions
    disks = json.loads(tools("log-dirs", "--describe", "--topic-list", "t").splitlines()[-1])
    found = {
        broker["broker"]: {p["partition"]: p["offsetLag"] for p in broker["logDirs"][0]["partitions"]}
        for broker in disks["brokers"]
    }
    assert found == {number: {"t-0": 0, "t-1": 0, "t-2": 0} for number in ALL}


def settings(tools: WarmTools) -> None:
    """Whichever broker is asked: of a topic, of all brokers, of one, which alone has it then."""
    name = "log.cleaner.io.max.bytes.per.second"
    tools("configs", "--alter", "--entity-type", "topics", "--entity-name", "t", "--add-config", "retention.ms=70000")
    assert "retention.ms=70000" in tools("configs", "--describe", "--entity-type", "topics", "--entity-name", "t")
    tools("configs", "--alter", "--entity-type", "brokers", "--entity-default", "--add-config", f"{name}=1000000")
    tools("configs", "--alter", "--entity-type", "brokers", "--entity-name", "2", "--add-config", f"{name}=2000000")
    described = tools("configs", "--describe", "--entity-type", "brokers", "--all")
    values = dict(
        re.findall(rf"^All configs for broker (\d) are:.*?^  {name}=(\S+) ", described, re.MULTILINE | re.DOTALL)
    )
    assert values == {"1": "1000000.0", "2": "2000000.0", "3": "1000000.0"}
    assert f"{name}=1000000" in tools("configs", "--describe", "--entity-type", "brokers", "--entity-default")


def access_rules(tools: WarmTools) -> None:
    """kafka-acls: what it adds it lists and removes."""
    alice = ("--allow-principal", "User:alice")
    tools("acls", "--add", *alice, "--producer", "--topic", "orders", "--transactional-id", "x")
    tools(
        "acls",
        "--add",
        *alice,
        "--consumer",
        "--topic",
        "team-",
        "--group",
        "team-",
        "--resource-pattern-type",
        "prefixed",
    )
    tools("acls", "--add", "--deny-principal", "User:*", "--deny-host", "10.0.0.1", "--operation", "All", "--cluster")
    listed = tools("acls", "--list")
    for pattern in (
        "resourceType=TOPIC, name=orders, patternType=LITERAL",
        "resourceType=TRANSACTIONAL_ID, name=x, patternType=LITERAL",
        "resourceType=TOPIC, name=team-, patternType=PREFIXED",
        "resourceType=GROUP, name=team-, patternType=PREFIXED",
        "(principal=User:*, host=10.0.0.1, operation=ALL, permissionType=DENY)",
    ):
        assert pattern in listed
    matching = tools("acls", "--list", "--topic", "team-a", "--resource-pattern-type", "match")
    assert "name=team-, patternType=PREFIXED" in matching and "orders" not in matching
    tools("acls", "--remove", "--force", *alice, "--operation", "Write", "--topic", "orders")
    assert "operation=WRITE" not in tools("acls", "--list", "--topic", "orders")
    tools("acls", "--remove", "--force", "--topic", "team-a", "--resource-pattern-type", "match")
    assert "resourceType=TOPIC, name=team-" not in tools("acls", "--list")
