"""Settings of a quorum node: its roles, the addresses of the controllers, and timeouts."""

from __future__ import annotations

from ...base.settings import ConfigValueType, Settings, setting

BROKER_ROLE = "broker"
CONTROLLER_ROLE = "controller"


class QuorumSettings(Settings):
    """Roles of the node, addresses of the controllers, and timeouts."""

    process_roles: tuple[str, ...] = setting(
        "process.roles",
        default=(),
        choices=(BROKER_ROLE, CONTROLLER_ROLE),
        doc="Roles of the node in a KRaft cluster: broker, controller, or both. Without roles and without "
        "ZooKeeper, the node forms a quorum by itself, whose controller has no listener.",
    )
    voters: tuple[str, ...] = setting(
        "controller.quorum.voters",
        default=(),
        doc="The voters of a static quorum, ID@HOST:PORT separated by commas.",
    )
    bootstrap_servers: tuple[str, ...] = setting(
        "controller.quorum.bootstrap.servers",
        default=(),
        doc="Addresses of controllers, HOST:PORT separated by commas, through which a node finds the quorum.",
    )
    metadata_log_dir: str | None = setting(
        "metadata.log.dir",
        default=None,
        doc="Directory of the metadata log. It may be separate from the log directories; the first of them is "
        "the default.",
    )
    heartbeat_interval_ms: int = setting(
        "broker.heartbeat.interval.ms",
        default=2000,
        at_least=1,
        doc="Interval of a broker's heartbeats to the active controller (KRaft).",
    )
    session_timeout_ms: int = setting(
        "broker.session.timeout.ms",
        default=9000,
        at_least=1,
        doc="Time without a heartbeat after which the active controller fences a broker.",
    )
    unclean_election_interval_ms: int = setting(
        "unclean.leader.election.interval.ms",
        default=300_000,
        at_least=1,
        kind=ConfigValueType.LONG,
        doc="Interval at which the active controller runs unclean leader elections.",
    )
    initial_registration_timeout_ms: int = setting(
        "initial.broker.registration.timeout.ms",
        default=60_000,
        at_least=1,
        doc="Time to wait for the first registration at the quorum; then the broker exits.",
    )
    request_timeout_ms: int = setting(
        "controller.quorum.request.timeout.ms",
        default=2000,
        at_least=1,
        doc="Time to wait for a controller's response, before the request goes to another one.",
    )
