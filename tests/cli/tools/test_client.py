"""A broker that dies or hangs under a client of the tools: another controller is asked; a log directory's broker is named."""

from __future__ import annotations

import re
from contextlib import closing

import kafka.errors
import pytest

import ottla
from ottla.cli.tools.client import Admin
from ottla.cli.tools.replicas.moves import under_way
from ottla.cli.tools.running import ToolError
from ottla.compat_tests.session import eventually

from ..helpers.command import Command

pytestmark = pytest.mark.slow


def is_answered(admin: Admin) -> bool:
    try:
        return under_way(admin) == {}
    except (ToolError, kafka.errors.KafkaError):
        return False


def is_told_without(admin: Admin, broker_id: int) -> bool:
    """Whether a broker is not among those that the client is told of now.

    By itself the client asks once, when the broker's connection ends: that may be before the others know that it has gone.
    """
    try:
        admin._manager.run(admin._manager.cluster.refresh_metadata)
    except kafka.errors.KafkaError:
        return False
    return admin._manager.cluster.broker_metadata(broker_id) is None


@pytest.mark.parametrize("is_killed", [True, False])
def test_another_controller_is_found(is_killed: bool) -> None:
    with (
        ottla.Cluster(2) as cluster,
        closing(Admin(bootstrap_servers=cluster.bootstrap_servers, request_timeout_ms=1_000)) as admin,
    ):
        assert under_way(admin) == {}
        lost = cluster.controller()
        assert lost is not None
        (cluster.kill if is_killed else cluster.pause)(lost)
        cluster.clock.advance(seconds=2)
        eventually(lambda: cluster.controller() not in (lost, None))
        if is_killed:  # the client is told which brokers there are before it asks the controller again
            eventually(lambda: is_told_without(admin, lost))
        eventually(lambda: is_answered(admin))


@pytest.mark.parametrize("command", [["cluster", "balance", "--dry-run", "--window", "0"], ["log-dirs"]])
def test_a_broker_that_has_just_died_is_named(command: list[str]) -> None:
    """It is among the brokers until its session has ended, which here it does not."""
    with ottla.Cluster(3, properties={"broker.session.timeout.ms": "600000"}) as cluster:
        lost = next(broker for broker in (1, 2, 3) if broker != cluster.controller())
        cluster.kill(lost)
        said = Command(cluster.bootstrap_servers).refused(*command)
    assert re.fullmatch(rf"broker {lost} is not reached \(.*\); if it has gone, .*: try again in a moment", said)
