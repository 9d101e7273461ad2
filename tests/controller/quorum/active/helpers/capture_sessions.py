"""The script of ``kafka-4.3.1-sessions.json``: what a controller does with time."""

from __future__ import annotations

from .capture_kafka import Capture
from .script_brokers import beat, register
from .script_partitions import alter_partition
from .script_topics import create, placed

ABOUT = "Sessions of brokers that end, at a controller of Apache Kafka 4.3.1; made by capture_kafka.py."
PROPERTIES = {
    "broker.session.timeout.ms": "3000",
    "auto.leader.rebalance.enable": "true",
    "leader.imbalance.check.interval.seconds": "5",
    "delegation.token.expiry.check.interval.ms": "1000",
    "unclean.leader.election.interval.ms": "1000",
}
FORMAT = ("-r", "4.3")
REGISTERS = True


def _unfence(capture: Capture, broker_id: int) -> None:
    beat(capture, f"broker {broker_id} is unfenced", broker_id, cordoned_log_dirs=[])


def script(capture: Capture) -> None:
    for broker_id in (1, 2, 3):
        register(capture, f"broker {broker_id}", broker_id)
        _unfence(capture, broker_id)
        capture.alive.add(broker_id)
    create(capture, "topic t", placed("t", [1, 2, 3], [2, 3, 1], [3, 1, 2], configs={"min.insync.replicas": "2"}))
    create(capture, "topic unclean", placed("unclean", [1, 2], configs={"unclean.leader.election.enable": "true"}))
    alter_partition(capture, "only broker 1 is in sync", "unclean", 0, 1, [1])
    capture.alive.remove(1)
    capture.wait("the session of broker 1 ends")
    register(capture, "broker 1 was killed, and is here again", 1, incarnation_id="second incarnation of 1")
    _unfence(capture, 1)
    capture.alive.add(1)
    alter_partition(capture, "broker 1 is in sync again", "t", 0, capture.partition("t").leader, [1, 2, 3])
    capture.wait("broker 1 is the preferred leader of t-0")
    for broker_id in (3, 2, 1):
        capture.alive.remove(broker_id)
        capture.wait(f"the session of broker {broker_id} ends")
    for broker_id in (3, 2, 1):
        incarnation = f"next incarnation of {broker_id}"
        register(
            capture, f"broker {broker_id} was killed", broker_id, incarnation_id=incarnation, previous_broker_epoch=-1
        )
        _unfence(capture, broker_id)
        capture.alive.add(broker_id)
    if (leader := capture.partition("t").leader) >= 0:
        alter_partition(capture, "all of t-0 are in sync", "t", 0, leader, [1, 2, 3])
    for broker_id in (3, 2):
        capture.alive.remove(broker_id)
        capture.wait(f"the session of broker {broker_id} ends")
    for broker_id in (2, 3):
        epoch, incarnation = capture.epochs[broker_id], f"last incarnation of {broker_id}"
        register(
            capture,
            f"broker {broker_id} was stopped cleanly",
            broker_id,
            incarnation_id=incarnation,
            previous_broker_epoch=epoch,
        )
        _unfence(capture, broker_id)
        capture.alive.add(broker_id)
