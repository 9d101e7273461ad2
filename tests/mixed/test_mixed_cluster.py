"""Ottla and Apache Kafka 3.9 in one cluster: each leads the other's replicas and takes records, as controller either.

``make test-mixed`` has more of it; this is what runs each time.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from ottla.compat_tests.zookeeper import ZooKeeperProcess

from .mixed import BOTH, running

pytestmark = pytest.mark.slow


def test_either_kind_leads_and_either_is_the_controller(
    tmp_path: Path, zookeeper_server: ZooKeeperProcess, zookeeper: str
) -> None:
    root = zookeeper.removeprefix(zookeeper_server.address)
    with running("mixed", tmp_path, zookeeper_server, root) as mixed:
        for controller, leader in itertools.product(BOTH, BOTH):
            mixed.led_by(controller)
            topic = f"{leader}-leads-under-{controller}"
            mixed.create(topic, mixed.replicas_from(mixed.one(leader)))
            values = [b"%d" % number for number in range(200)]
            mixed.produce(topic, values, **{"enable.idempotence": True})
            assert mixed.read(topic, len(values)) == values
            mixed.wait_same(topic)
            mixed.wait_isr(topic, mixed.ids)
        assert mixed.troubles() == []
