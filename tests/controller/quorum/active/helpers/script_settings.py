"""Steps with settings: configs, quotas, producer ids and features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ottla.wire.api_keys import ApiKey

from .capture_kafka import Capture
from .script_topics import create, placed

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
Change = tuple[str, int, str | None]


def resource(kind: int, name: str, *changes: Change) -> dict[str, Any]:
    """A resource of IncrementalAlterConfigs."""
    configs = [{"name": key, "config_operation": operation, "value": value} for key, operation, value in changes]
    return {"resource_type": kind, "resource_name": name, "configs": configs}


def alter(capture: Capture, about: str, *resources: Mapping[str, Any], version: int = 1, **more: Any) -> None:
    capture.call(about, ApiKey.INCREMENTAL_ALTER_CONFIGS, version, resources=list(resources), **more)


def replace(capture: Capture, about: str, kind: int, name: str, configs: Mapping[str, str | None], **more: Any) -> None:
    """AlterConfigs: everything that is not named is removed."""
    given = [{"name": key, "value": value} for key, value in configs.items()]
    resources = [{"resource_type": kind, "resource_name": name, "configs": given}]
    capture.call(about, ApiKey.ALTER_CONFIGS, 2, resources=resources, **more)


def topic_configs(capture: Capture) -> None:
    """Topic t has configs."""
    create(capture, "topic t", placed("t", [1, 2, 3]))

    def change(about: str, *changes: Change, name: str = "t", **more: Any) -> None:
        alter(capture, about, resource(TOPIC, name, *changes), **more)

    change("a config is set", ("retention.ms", SET, "1000"))
    change("it has this value already", ("retention.ms", SET, "1000"))
    change("several", ("retention.ms", SET, "2000"), ("segment.ms", SET, "3000"), ("cleanup.policy", SET, "compact"))
    change("a value is appended", ("cleanup.policy", APPEND, "delete"))
    change("a value is appended that is there", ("cleanup.policy", APPEND, "delete"))
    change("a value is taken away", ("cleanup.policy", SUBTRACT, "compact"))
    change("a value is taken away that is not there", ("cleanup.policy", SUBTRACT, "compact"))
    change("a value is appended to the default", ("cleanup.policy", DELETE, None))
    change("a value is appended to the default, and one more", ("cleanup.policy", APPEND, "compact"))
    change("by version 0", ("retention.ms", SET, "5000"), version=0)
    change("a config is removed", ("segment.ms", DELETE, None))
    change("a config is removed that is not set", ("segment.ms", DELETE, None))
    change("a value is not used where one is removed", ("retention.ms", DELETE, "7"))
    change("min.insync.replicas clears eligible leaders", ("min.insync.replicas", SET, "2"))
    change("min.insync.replicas is removed", ("min.insync.replicas", DELETE, None))
    change("nothing is changed, only checked", ("retention.ms", SET, "1"), validate_only=True)
    change("no configs")
    change("throttled replicas", ("leader.replication.throttled.replicas", APPEND, "0:1,1:2"))
    change("refused: an unknown topic", ("retention.ms", SET, "1"), name="unknown")
    change("refused: no topic", ("retention.ms", SET, "1"), name="")
    change("refused: a name with a slash", ("retention.ms", SET, "1"), name="x/y")
    change("refused: an unknown config", ("nothing", SET, "1"))
    change("refused: removal of an unknown config", ("nothing", DELETE, None))
    change("refused: the wrong type", ("retention.ms", SET, "soon"))
    change("refused: an empty value", ("retention.ms", SET, ""))
    change("refused: too small", ("min.insync.replicas", SET, "0"))
    change("refused: no choice", ("cleanup.policy", SET, "keep"))
    change("without a value, where none is set", ("retention.ms", SET, None))
    change("refused: an append to a number", ("retention.ms", APPEND, "1"))
    change("refused: a subtraction from a number", ("retention.ms", SUBTRACT, "1"))
    change("a long value", ("leader.replication.throttled.replicas", SET, ",".join(f"{n}:1" for n in range(3_000))))
    change(
        "refused: it gets too long",
        ("leader.replication.throttled.replicas", APPEND, ",".join(f"{n}:2" for n in range(3_000))),
    )
    change("the long value is removed", ("leader.replication.throttled.replicas", DELETE, None))
    change(
        "refused: two configs that contradict", ("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "8")
    )
    change("refused: a tiered topic", ("remote.storage.enable", SET, "true"))
    change("one key twice", ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    alter(
        capture,
        "one topic of two is unknown",
        resource(TOPIC, "t", ("retention.ms", SET, "4")),
        resource(TOPIC, "unknown", ("retention.ms", SET, "4")),
    )
    alter(capture, "refused: a resource twice", *[resource(TOPIC, "t", ("retention.ms", SET, "5"))] * 2)
    alter(capture, "refused: a resource of an unknown type", resource(7, "t", ("retention.ms", SET, "5")))
    alter(capture, "no resources")
    _replaced_topic_configs(capture)


def _replaced_topic_configs(capture: Capture) -> None:
    """Topic t has no configs in the end."""
    replace(capture, "two configs, all others are removed", TOPIC, "t", {"retention.ms": "9", "segment.ms": "10"})
    replace(capture, "one of them", TOPIC, "t", {"segment.ms": "11"})
    replace(capture, "nothing is changed, only checked", TOPIC, "t", {"segment.ms": "12"}, validate_only=True)
    replace(capture, "min.insync.replicas", TOPIC, "t", {"min.insync.replicas": "2"})
    replace(capture, "min.insync.replicas is left out", TOPIC, "t", {"retention.ms": "13"})
    replace(capture, "without a value, which removes it", TOPIC, "t", {"retention.ms": None})
    replace(capture, "refused: an unknown config", TOPIC, "t", {"nothing": "1"})
    replace(capture, "refused: the wrong type", TOPIC, "t", {"retention.ms": "soon"})
    replace(capture, "refused: an unknown topic", TOPIC, "unknown", {"retention.ms": "1"})
    replace(capture, "all are removed", TOPIC, "t", {})
    given = {"resource_type": TOPIC, "resource_name": "t", "configs": [{"name": "retention.ms", "value": "5"}]}
    capture.call("refused: a resource twice", ApiKey.ALTER_CONFIGS, 2, resources=[given, given])
    capture.call("refused: an unknown type", ApiKey.ALTER_CONFIGS, 2, resources=[{**given, "resource_type": 7}])
    capture.call("no resources", ApiKey.ALTER_CONFIGS, 2, resources=[])


def broker_configs(capture: Capture) -> None:
    """Broker 1 and all brokers have configs."""

    def change(about: str, name: str, *changes: Change, **more: Any) -> None:
        alter(capture, about, resource(BROKER, name, *changes), **more)

    change("a config of a broker", "1", ("log.cleaner.threads", SET, "2"))
    change("it has this value, and a record is written", "1", ("log.cleaner.threads", SET, "2"))
    change("a config is removed that is not set, and a record is written", "1", ("message.max.bytes", DELETE, None))
    change("a config of all brokers", "", ("log.cleaner.threads", SET, "3"))
    change("a password", "", ("ssl.keystore.password", SET, "secret"))
    change("an unknown config is not refused here", "1", ("nothing", SET, "1"))
    change("nor one of the wrong type", "1", ("log.cleaner.threads", SET, "many"))
    change("nor one without a value", "1", ("log.cleaner.threads", SET, None))
    change("a value is appended", "", ("log.cleanup.policy", APPEND, "compact"))
    change("a value is taken away", "", ("log.cleanup.policy", SUBTRACT, "delete"))
    change("refused: an append to a number", "1", ("log.cleaner.threads", APPEND, "1"))
    change("refused: an append to an unknown config", "1", ("nothing", APPEND, "1"))
    change("the controller", "3000", ("log.cleaner.threads", SET, "2"))
    change("min.insync.replicas of all clears all eligible leaders", "", ("min.insync.replicas", SET, "2"))
    change("min.insync.replicas of all, by the same value", "", ("min.insync.replicas", SET, "2"))
    change("refused: min.insync.replicas of a broker", "1", ("min.insync.replicas", SET, "2"))
    change("refused: removal of min.insync.replicas of all", "", ("min.insync.replicas", DELETE, None))
    change("refused: an unknown broker", "77", ("log.cleaner.threads", SET, "2"))
    change("refused: a negative id", "-1", ("log.cleaner.threads", SET, "2"))
    change("refused: not an id", "one", ("log.cleaner.threads", SET, "2"))
    change("refused: a directory is cordoned without a broker", "1", ("cordoned.log.dirs", SET, "/data"))
    change(
        "a directory is cordoned by a broker",
        "1",
        ("cordoned.log.dirs", SET, "/data, /more"),
        principal="User:ANONYMOUS",
    )
    change("one of them is cordoned", "1", ("cordoned.log.dirs", SET, "/more"))
    change("refused: another one", "1", ("cordoned.log.dirs", SET, "/more,/other"))
    change("none is cordoned", "1", ("cordoned.log.dirs", SET, ""))
    change("nothing is said of cordoned directories", "1", ("cordoned.log.dirs", DELETE, None))
    replace(capture, "one config, all others are removed", BROKER, "1", {"log.cleaner.threads": "4"})
    replace(capture, "the same again", BROKER, "1", {"log.cleaner.threads": "4"})
    replace(capture, "refused: min.insync.replicas of all is left out", BROKER, "", {"log.cleaner.threads": "4"})
    replace(capture, "all of all brokers but two", BROKER, "", {"min.insync.replicas": "1", "log.cleaner.threads": "5"})
    replace(capture, "refused: min.insync.replicas of a broker", BROKER, "1", {"min.insync.replicas": "1"})
    replace(capture, "refused: an unknown broker", BROKER, "77", {})
    replace(capture, "all of a broker are removed", BROKER, "1", {})
    alter(capture, "refused: no broker's logger", resource(BROKER_LOGGER, "1", ("root", SET, "INFO")))


def group_configs(capture: Capture) -> None:
    """Configs of a group, and a subscription to clients' metrics."""

    def change(about: str, name: str, *changes: Change, kind: int = GROUP) -> None:
        alter(capture, about, resource(kind, name, *changes))

    change("a config of a group", "g", ("consumer.session.timeout.ms", SET, "50000"))
    change("another one", "g", ("consumer.heartbeat.interval.ms", SET, "6000"))
    change("one is removed", "g", ("consumer.session.timeout.ms", DELETE, None))
    change("refused: no group", "", ("consumer.session.timeout.ms", SET, "50000"))
    change("refused: an unknown config", "g", ("nothing", SET, "1"))
    change("refused: the wrong type", "g", ("consumer.session.timeout.ms", SET, "soon"))
    change("refused: too small", "g", ("consumer.session.timeout.ms", SET, "1"))
    change("refused: above the broker's limit", "g", ("consumer.session.timeout.ms", SET, "600000"))
    change(
        "refused: a session shorter than a heartbeat",
        "g",
        ("consumer.session.timeout.ms", SET, "45000"),
        ("consumer.heartbeat.interval.ms", SET, "46000"),
    )
    change("without a value, where none is set", "g", ("consumer.session.timeout.ms", SET, None))
    replace(capture, "all configs of a group", GROUP, "g", {"share.session.timeout.ms": "50000"})
    replace(capture, "refused: an unknown config", GROUP, "g", {"nothing": "1"})
    for about, name, changes in (
        ("a subscription", "m", [("metrics", SET, "org.apache.kafka"), ("interval.ms", SET, "1000")]),
        ("a match", "m", [("match", SET, "client_id=a.*,client_software_name=b")]),
        ("refused: an append", "m", [("metrics", APPEND, "other")]),
        ("a config is removed", "m", [("match", DELETE, None)]),
        ("refused: no name", "", [("interval.ms", SET, "1000")]),
        ("refused: an unknown config", "m", [("nothing", SET, "1")]),
        ("refused: too small an interval", "m", [("interval.ms", SET, "1")]),
        ("refused: too large an interval", "m", [("interval.ms", SET, "3600001")]),
        ("refused: an interval that is none", "m", [("interval.ms", SET, "soon")]),
        ("refused: a match without a value", "m", [("match", SET, "client_id")]),
        ("refused: a match of an unknown kind", "m", [("match", SET, "nothing=a")]),
        ("refused: a match that is no expression", "m", [("match", SET, "client_id=(")]),
        ("without a value, which removes it", "m", [("interval.ms", SET, None)]),
    ):
        change(about, name, *changes, kind=CLIENT_METRICS)


def quotas(capture: Capture) -> None:
    """Quotas of users, clients and addresses."""

    def entry(
        entity: Mapping[str, str | None] | Sequence[tuple[str, str]], *ops: tuple[str, float | None]
    ) -> dict[str, Any]:
        pairs = entity.items() if isinstance(entity, Mapping) else entity
        parts = [{"entity_type": kind, "entity_name": name} for kind, name in pairs]
        given = [{"key": key, **({"remove": True} if value is None else {"value": value})} for key, value in ops]
        return {"entity": parts, "ops": given}

    def change(about: str, *entries: Mapping[str, Any], version: int = 1, **more: Any) -> None:
        capture.call(about, ApiKey.ALTER_CLIENT_QUOTAS, version, entries=list(entries), **more)

    user: dict[str, str | None] = {"user": "u"}
    change("two quotas of a user", entry(user, ("producer_byte_rate", 1000.0), ("request_percentage", 12.5)))
    change(
        "one is the same, another changes", entry(user, ("producer_byte_rate", 1000.0), ("request_percentage", 13.0))
    )
    change("one is removed", entry(user, ("request_percentage", None)))
    change("one is removed that is not set", entry(user, ("request_percentage", None)))
    change("of a user and a client", entry({"user": "u", "client-id": "c"}, ("consumer_byte_rate", 1.0)))
    change("of all users and a client", entry({"user": None, "client-id": "c"}, ("controller_mutation_rate", 0.5)))
    change("of all clients", entry({"client-id": None}, ("consumer_byte_rate", 2.0)), version=0)
    change("of an address", entry({"ip": "127.0.0.1"}, ("connection_creation_rate", 3.0)))
    change("of all addresses", entry({"ip": None}, ("connection_creation_rate", 4.0)))
    change("nothing is changed, only checked", entry(user, ("producer_byte_rate", 5.0)), validate_only=True)
    change("no changes", entry(user))
    change("no entities")
    change("one of two is refused", entry(user, ("producer_byte_rate", 6.0)), entry({"user": "v"}, ("nothing", 1.0)))
    change("an entity twice", entry(user, ("producer_byte_rate", 7.0)), entry(user, ("consumer_byte_rate", 7.0)))
    change("a key twice", entry(user, ("producer_byte_rate", 8.0), ("producer_byte_rate", 9.0)))
    change("refused: an empty entity", entry({}, ("producer_byte_rate", 1.0)))
    change("refused: an unknown kind of entity", entry({"planet": "earth"}, ("producer_byte_rate", 1.0)))
    change("refused: an empty name", entry({"user": ""}, ("producer_byte_rate", 1.0)))
    change("refused: an address and a user", entry({"ip": "127.0.0.1", "user": "u"}, ("producer_byte_rate", 1.0)))
    change("refused: an address that is none", entry({"ip": "1.2.3.4.5"}, ("connection_creation_rate", 1.0)))
    change("refused: a key of addresses for a user", entry(user, ("connection_creation_rate", 1.0)))
    change("refused: a key of users for an address", entry({"ip": "127.0.0.1"}, ("producer_byte_rate", 1.0)))
    change("refused: 0", entry(user, ("producer_byte_rate", 0.0)))
    change("refused: below 0", entry(user, ("request_percentage", -1.0)))
    change("refused: a fraction of a byte", entry(user, ("producer_byte_rate", 1.5)))
    change("a very small fraction", entry(user, ("producer_byte_rate", 1.0000001)))
    change("a very large quota", entry(user, ("producer_byte_rate", 1e30)))
    change("refused: too many connections", entry({"ip": "127.0.0.1"}, ("connection_creation_rate", 3e9)))
    change("refused: a credential is no quota", entry(user, ("SCRAM-SHA-256", 1.0)))


def producer_ids(capture: Capture) -> None:
    """Three blocks of producer ids."""

    def allocate(about: str, broker_id: int, epoch: int) -> None:
        capture.call(about, ApiKey.ALLOCATE_PRODUCER_IDS, 0, broker_id=broker_id, broker_epoch=epoch)

    allocate("the first block", 1, capture.epochs[1])
    allocate("the next block", 1, capture.epochs[1])
    allocate("for another broker", 2, capture.epochs[2])
    allocate("refused: an unknown broker", 77, 1)
    allocate("refused: another epoch", 1, 1_000_000)


def update_features(
    capture: Capture, about: str, levels: Mapping[str, int], kind: int = 1, *, version: int = 2, **more: Any
) -> None:
    """``kind``: 1 for an upgrade, 2 for a safe and 3 for an unsafe downgrade."""
    kinds = {"upgrade_type": kind} if version else {"allow_downgrade": kind > 1}
    updates = [{"feature": name, "max_version_level": level, **kinds} for name, level in levels.items()]
    capture.call(about, ApiKey.UPDATE_FEATURES, version, feature_updates=updates, **more)


def features(capture: Capture) -> None:
    """What can be changed at the highest levels. All brokers support all of them."""

    def update(about: str, levels: Mapping[str, int], kind: int = 1, **more: Any) -> None:
        update_features(capture, about, levels, kind, **more)

    update("the level that is", {"group.version": 1})
    update("the levels that are", {"metadata.version": 30, "transaction.version": 2})
    update("refused: a downgrade without a type", {"group.version": 0})
    update("nothing is changed, only checked", {"group.version": 0}, 2, validate_only=True)
    update("a downgrade", {"group.version": 0}, 2)
    update("an upgrade, by version 1", {"group.version": 1}, version=1)
    update("a downgrade, by version 0", {"share.version": 0}, 2, version=0)
    update("an unsafe downgrade of two", {"streams.version": 0, "group.version": 0}, 3)
    update("refused: a downgrade to a newer level", {"group.version": 1}, 2)
    update("a downgrade to the level that is", {"group.version": 0}, 2)
    update("refused: an unknown type", {"group.version": 1}, 7)
    update("refused: an unknown type 0", {"group.version": 1}, 0)
    update("refused: an unknown feature", {"a.feature": 1})
    update("an unknown feature at level 0", {"a.feature": 0})
    update("refused: a level that is too high", {"group.version": 9})
    update("refused: a level below 0", {"group.version": -1})
    update("refused: a metadata.version that is too high", {"metadata.version": 99})
    update("refused: a metadata.version that is too low", {"metadata.version": 6}, 2)
    update("refused: metadata.version 0", {"metadata.version": 0}, 2)
    update("refused: a downgrade of metadata.version", {"metadata.version": 29}, 2)
    update("refused: an unsafe downgrade of metadata.version", {"metadata.version": 29}, 3)
    update("refused: a downgrade of metadata.version without a type", {"metadata.version": 29})
    update("refused: one of two", {"group.version": 1, "transaction.version": 9})
    update("refused: by version 1", {"group.version": 9}, version=1)
    update("no features", {})
    update("eligible leader replicas are turned off", {"eligible.leader.replicas.version": 0}, 2)
    alter(capture, "min.insync.replicas of a broker", resource(BROKER, "1", ("min.insync.replicas", SET, "2")))
    alter(capture, "and of another one", resource(BROKER, "2", ("min.insync.replicas", SET, "1")))
    alter(capture, "min.insync.replicas of all is removed", resource(BROKER, "", ("min.insync.replicas", DELETE, None)))
    alter(
        capture,
        "min.insync.replicas of a topic clears nothing",
        resource(TOPIC, "t", ("min.insync.replicas", SET, "2")),
    )
    update("checked: eligible leader replicas", {"eligible.leader.replicas.version": 1}, validate_only=True)
    update("eligible leader replicas", {"eligible.leader.replicas.version": 1})
    update("eligible leader replicas again", {"eligible.leader.replicas.version": 1})
    update("checked: kraft.version", {"kraft.version": 1}, validate_only=True)
    update("kraft.version", {"kraft.version": 1})
    update("kraft.version again", {"kraft.version": 1})
    update("refused: kraft.version 0", {"kraft.version": 0}, 2)
    update("refused: kraft.version 2", {"kraft.version": 2})
