"""Steps with brokers: registrations, heartbeats, fencing, controlled shutdowns, and the end of a registration."""

from __future__ import annotations

from typing import Any

from ottla.compat_tests.kraft_cluster import CLUSTER_ID
from ottla.wire.api_keys import ApiKey

from .capture_kafka import CONTROLLER, Capture

SUPPORTED = {
    "metadata.version": (7, 30),
    "kraft.version": (0, 1),
    "transaction.version": (0, 2),
    "group.version": (0, 1),
    "eligible.leader.replicas.version": (0, 1),
    "share.version": (0, 1),
    "streams.version": (0, 1),
}
DIRECTORIES = {1: ["1a"], 2: ["2a"], 3: ["3a", "3b"], 4: ["4a"]}


def feature_ranges(**changed: tuple[int, int] | None) -> list[dict[str, Any]]:
    """What a broker supports; ``metadata_version=None`` leaves one out."""
    ranges: dict[str, tuple[int, int] | None] = {**SUPPORTED}
    ranges.update({name.replace("_", "."): each for name, each in changed.items()})
    return [
        {"name": name, "min_supported_version": each[0], "max_supported_version": each[1]}
        for name, each in ranges.items()
        if each is not None
    ]


def register(capture: Capture, about: str, broker_id: int, version: int = 4, **changed: Any) -> Any:
    """The registration of a broker, whose epoch is noted."""
    fields: dict[str, Any] = {
        "broker_id": broker_id,
        "cluster_id": CLUSTER_ID,
        "incarnation_id": f"incarnation of {broker_id}",
        "listeners": [{"name": "PLAINTEXT", "host": f"host-{broker_id}", "port": 9000 + broker_id}],
        "features": feature_ranges(),
        "rack": "r" if broker_id == 4 else None,
        "log_dirs": DIRECTORIES.get(broker_id, []),
        **changed,
    }
    response = capture.call(about, ApiKey.BROKER_REGISTRATION, version, **fields)
    if not response.error_code:
        capture.epochs[broker_id] = response.broker_epoch
    return response


def beat(capture: Capture, about: str, broker_id: int, version: int = 2, **changed: Any) -> Any:
    """The heartbeat of a broker that has applied everything and wants to be unfenced."""
    fields = {
        "broker_id": broker_id,
        "broker_epoch": capture.epochs[broker_id],
        "current_metadata_offset": capture.end_offset,
        **changed,
    }
    return capture.call(about, ApiKey.BROKER_HEARTBEAT, version, **fields)


def brokers(capture: Capture) -> None:
    """Brokers 1 to 4 are registered, and 1 to 3 unfenced."""
    register(capture, "a broker of another cluster", 1, cluster_id="another")
    register(capture, "a broker that comes from a ZooKeeper", 1, is_migrating_zk_broker=True)
    register(capture, "a broker without log directories", 1, log_dirs=[])
    register(capture, "a registration of version 1, which has no log directories", 1, 1, log_dirs=[])
    register(capture, "a broker whose directory id is reserved", 1, log_dirs=["lost"])
    register(capture, "a broker with the same directory twice", 1, log_dirs=["1a", "1a"])
    register(capture, "a broker without metadata.version", 1, features=feature_ranges(metadata_version=None))
    register(capture, "a broker of an older metadata.version", 1, features=feature_ranges(metadata_version=(7, 29)))
    register(capture, "a broker without a feature that is finalized", 1, features=feature_ranges(group_version=None))
    register(
        capture, "a broker of an older transaction.version", 1, features=feature_ranges(transaction_version=(0, 1))
    )
    beat_unknown = {"broker_id": 1, "broker_epoch": 0, "current_metadata_offset": 0}
    capture.call("a heartbeat of an unknown broker", ApiKey.BROKER_HEARTBEAT, 2, **beat_unknown)
    register(capture, "a broker with a feature that has to be on", 1, features=feature_ranges(a_feature=(2, 3)))
    register(capture, "broker 1, with a feature that is not known here", 1, features=feature_ranges(a_feature=(0, 3)))
    register(capture, "the same incarnation again", 1)
    register(capture, "another incarnation of a broker that is fenced", 1, incarnation_id="another incarnation of 1")
    register(capture, "the first one again", 1)
    register(capture, "a broker with a directory of broker 1", 2, log_dirs=["1a"])
    register(capture, "broker 2, by version 3", 2, 3)
    register(
        capture,
        "broker 3, with two directories and two listeners",
        3,
        listeners=[
            {"name": "A", "host": "host-3", "port": 9003, "security_protocol": 0},
            {"name": "B", "host": "host-3", "port": 9103, "security_protocol": 3},
        ],
    )
    beat(capture, "a heartbeat with another epoch", 1, broker_epoch=capture.epochs[1] + 1)
    beat(capture, "broker 1 is behind, and so stays fenced", 1, current_metadata_offset=capture.epochs[1] - 1)
    beat(capture, "broker 1 has caught up, but wants to be fenced", 1, want_fence=True)
    beat(capture, "broker 1 names no cordoned directories", 1, want_fence=True, cordoned_log_dirs=[])
    beat(capture, "the same again", 1, want_fence=True, cordoned_log_dirs=[])
    beat(capture, "broker 1 is unfenced", 1)
    beat(capture, "a heartbeat that changes nothing", 1)
    register(capture, "another incarnation while the session lives", 1, incarnation_id="another incarnation of 1")
    beat(capture, "broker 1 is fenced, as it wants", 1, want_fence=True)
    beat(capture, "broker 1 is unfenced again, by version 0", 1, 0)
    beat(capture, "broker 2 is unfenced, by version 1", 2, 1)
    beat(capture, "broker 3 is unfenced and has a cordoned directory", 3, cordoned_log_dirs=["3b"])
    beat(capture, "broker 3 has no cordoned directory", 3, cordoned_log_dirs=[])
    beat(capture, "broker 3 names a directory that it does not have", 3, cordoned_log_dirs=["4a"])
    register(capture, "broker 4, which stays fenced", 4)
    fields = {"controller_id": CONTROLLER + 1, "incarnation_id": "incarnation of another controller"}
    listeners = [{"name": "CONTROLLER", "host": "host-c", "port": 9999}]
    capture.call(
        "a controller without metadata.version is registered",
        ApiKey.CONTROLLER_REGISTRATION,
        0,
        **fields,
        listeners=listeners,
        features=feature_ranges(metadata_version=None),
    )
    capture.call(
        "a controller is registered",
        ApiKey.CONTROLLER_REGISTRATION,
        0,
        **fields,
        listeners=listeners,
        features=feature_ranges(),
        zk_migration_ready=True,
    )


def leaving_brokers(capture: Capture) -> None:
    """Broker 2 stops in a controlled way, and comes back. Brokers 3 and 4 leave the cluster, and 3 returns."""
    created = {"name": "left", "num_partitions": -1, "replication_factor": -1}
    created_as = [{"partition_index": n, "broker_ids": ids} for n, ids in enumerate([[2, 1], [1, 2], [2, 3]])]
    capture.call("topic left", ApiKey.CREATE_TOPICS, 7, topics=[{**created, "assignments": created_as}])
    beat(capture, "broker 2 wants to stop, and leads some partitions", 2, want_shut_down=True)
    beat(capture, "broker 2 waits: the others have not applied it", 2, want_shut_down=True)
    beat(capture, "broker 1 has applied it", 1)
    beat(capture, "broker 3 has applied it", 3)
    beat(capture, "broker 2 may stop", 2, want_shut_down=True)
    beat(capture, "broker 2 says it again, as a fenced broker", 2, want_shut_down=True)
    beat(capture, "broker 2 comes back with a heartbeat", 2)
    beat(capture, "broker 4 is unfenced", 4, cordoned_log_dirs=[])
    beat(capture, "broker 4, which leads nothing, wants to stop", 4, want_shut_down=True)
    beat(capture, "broker 4 is unfenced again", 4, cordoned_log_dirs=[])
    beat(capture, "the only directory of broker 4 has failed", 4, offline_log_dirs=["4a"], cordoned_log_dirs=[])
    capture.call("an unknown broker is unregistered", ApiKey.UNREGISTER_BROKER, 0, broker_id=77)
    capture.call("broker 4 is unregistered", ApiKey.UNREGISTER_BROKER, 0, broker_id=4)
    capture.call("broker 3 is unregistered, with its partitions", ApiKey.UNREGISTER_BROKER, 0, broker_id=3)
    beat(capture, "broker 3 is unknown", 3)
    register(capture, "broker 3 is back", 3)
    beat(capture, "broker 3 is unfenced", 3, cordoned_log_dirs=[])
