"""Metrics of the controller, in ZooKeeper mode or of a quorum, and of a broker's session at the cluster's store.

Each ``next`` makes one complete family, as in ``collector``.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from ...controller.quorum.active.figures import QuorumControllerFigures, RegistrationState
from ...controller.zookeeper.active.figures import ClusterFigures
from ...controller.zookeeper.cluster import ZooKeeperCluster
from ...controller.zookeeper.store.session import SessionState
from ...handlers.services import Services
from .families import control
from .samples import distributions, simple, single

_KAFKAS_NAMES = {
    SessionState.CONNECTED: "CONNECTED",
    SessionState.SUSPECTED: "CONNECTING",
    SessionState.EXPIRED: "CLOSED",
}


def control_metrics(services: Services | None, of_quorum: QuorumControllerFigures | None) -> Iterator[Metric]:
    """``of_quorum``: where the node is a controller of a quorum."""
    cluster = services.cluster if services is not None and isinstance(services.cluster, ZooKeeperCluster) else None
    yield from _cluster(cluster, of_quorum)
    figures = None if cluster is None else cluster.controller.figures
    unclean = 0 if figures is None else figures.elections.unclean
    queues = [] if figures is None else [((str(broker_id),), sender) for broker_id, sender in figures.senders.queues()]
    yield distributions(control.ELECTION_TIMES, [] if figures is None else [((), figures.elections.times)])
    yield single(control.UNCLEAN_ELECTIONS, unclean if of_quorum is None else of_quorum.metadata.unclean_elections)
    yield single(control.EVENT_QUEUE_SIZE, 0 if figures is None else figures.events.size)
    yield distributions(control.EVENT_QUEUE_TIMES, [] if figures is None else [((), figures.events.times)])
    yield simple(control.SENDER_QUEUE_SIZE, [(labels, sender.size) for labels, sender in queues])
    yield distributions(control.SENDER_QUEUE_TIMES, [(labels, sender.times) for labels, sender in queues])


def _cluster(on_zookeeper: ZooKeeperCluster | None, of_quorum: QuorumControllerFigures | None) -> Iterator[Metric]:
    is_active, cluster, topics = False, ClusterFigures(), list[tuple[str, int]]()
    if on_zookeeper is not None and on_zookeeper.controller.is_active:
        figures = on_zookeeper.controller.figures
        is_active, cluster, topics = True, figures.cluster(), figures.partitions_by_topic()
    elif of_quorum is not None:
        is_active = of_quorum.is_active
        cluster = _counted(of_quorum)
        topics = of_quorum.partitions_by_topic() if is_active else []
    yield single(control.ACTIVE_CONTROLLER, is_active)
    yield single(control.ACTIVE_BROKERS, cluster.brokers)
    yield single(control.OFFLINE_PARTITIONS, cluster.offline_partitions)
    yield single(control.PREFERRED_IMBALANCE, cluster.preferred_imbalance)
    yield single(control.TOPICS, cluster.topics)
    yield single(control.ALL_PARTITIONS, cluster.partitions)
    yield simple(control.TOPIC_PARTITIONS, [((topic,), count) for topic, count in topics])
    yield single(control.TOPICS_TO_DELETE, cluster.topics_to_delete)


def _counted(figures: QuorumControllerFigures) -> ClusterFigures:
    return ClusterFigures(
        sum(state is not RegistrationState.FENCED for state in figures.brokers.values()),
        figures.topics,
        figures.metadata.partitions,
        figures.offline_partitions,
        figures.preferred_imbalance,
    )


def session_metrics(services: Services | None) -> Iterator[Metric]:
    """Samples of a broker on ZooKeeper."""
    session = (
        services.cluster.session if services is not None and isinstance(services.cluster, ZooKeeperCluster) else None
    )
    states = [] if session is None else [((name,), session.state is state) for state, name in _KAFKAS_NAMES.items()]
    yield simple(control.SESSION_STATE, states)
    yield single(control.SESSION_CONNECTS, 0 if session is None else session.connects)
    yield single(control.SESSION_DISCONNECTS, 0 if session is None else session.disconnects)
    yield single(control.SESSION_EXPIRATIONS, 0 if session is None else session.expirations)
    yield distributions(control.STORE_TIMES, [] if session is None else [((), session.times)])
