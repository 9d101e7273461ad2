"""Settings of a quorum node: its roles, the addresses of the controllers, and timeouts."""

from __future__ import annotations

from ...base.settings import ConfigValueType, Settings, setting

BROKER_ROLE = "broker"
CONTROLLER_ROLE = "controller"


class QuorumSettings(Settings):
    """Its roles, where the controllers are, and how long things may take."""

    process_roles: tuple[str, ...] = setting(
        "process.roles",
        default=(),
        choices=(BROKER_ROLE, CONTROLLER_ROLE),
        doc="What the node is in a cluster of KRaft: broker, controller, or both. Without it, and without a "
        "ZooKeeper, the node is a quorum of its own, whose controller has no listener.",
    )
    voters: tuple[str, ...] = setting(
        "controller.quorum.voters",
        default=(),
        doc="The voters of a quorum whose voters cannot change, ID@HOST:PORT with commas between.",
    )
    bootstrap_servers: tuple[str, ...] = setting(
        "controller.quorum.bootstrap.servers",
        default=(),
        doc="Addresses of controllers, HOST:PORT with commas between, by which a node finds the quorum.",
    )
    metadata_log_dir: str | None = setting(
        "metadata.log.dir",
        default=None,
        doc="The folder of the metadata log, which may be one beside the data folders; the first of these if not given.",
    )
    heartbeat_interval_ms: int = setting(
        "broker.heartbeat.interval.ms",
        default=2000,
        at_least=1,
        doc="How often a broker of a cluster of KRaft tells the controller that it is alive.",
    )
    session_timeout_ms: int = setting(
        "broker.session.timeout.ms",
        default=9000,
        at_least=1,
        doc="Time without a heartbeat after which the active controller takes a broker for dead.",
    )
    unclean_election_interval_ms: int = setting(
        "unclean.leader.election.interval.ms",
        default=300_000,
        at_least=1,
        kind=ConfigValueType.LONG,
        doc="How often the active controller looks for partitions without a leader that may get one that was not in sync.",
    )
    initial_registration_timeout_ms: int = setting(
        "initial.broker.registration.timeout.ms",
        default=60_000,
        at_least=1,
        doc="How long a start waits for its first registration at the quorum, before it ends.",
    )
    request_timeout_ms: int = setting(
        "controller.quorum.request.timeout.ms",
        default=2000,
        at_least=1,
        doc="How long a controller may take for its answer, before another one is asked.",
    )
