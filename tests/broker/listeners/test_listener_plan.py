"""Which listeners a broker has, where brokers meet, and where the controller reaches them."""

from __future__ import annotations

import pytest

from ottla.base.config import Config
from ottla.base.memory_network import MemoryNetwork
from ottla.base.settings import SettingError
from ottla.broker.listeners.listener_plan import plan_listeners
from ottla.broker.server import BrokerServer, StartError


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
async def test_what_tls_lacks_is_said_before_anything_is_bound(protocol: str) -> None:
    properties = {"listeners": f"OUTSIDE://h:1,{protocol}://h:2"}
    properties["listener.security.protocol.map"] = f"OUTSIDE:PLAINTEXT,{protocol}:{protocol}"
    network = MemoryNetwork()
    with pytest.raises(StartError, match="a listener with TLS needs a key store"):
        await BrokerServer(Config(properties), network=network).serve()
    assert not network.listeners


TWO = {
    "listeners": "INSIDE://h:1,OUTSIDE://h:2",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
}


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"inter.broker.listener.name": "INSIDE", "security.inter.broker.protocol": "PLAINTEXT"}, "only one of"),
        ({"inter.broker.listener.name": "OTHER"}, "no such name is among the listeners"),
        ({"inter.broker.listener.name": "INSIDE", "advertised.listeners": "OUTSIDE://o:1"}, "no such name"),
        ({"security.inter.broker.protocol": "SSL"}, "no listener has it"),
        ({"control.plane.listener.name": "OTHER"}, "no such name is among the listeners"),
        (
            {"connection.failed.authentication.delay.ms": "9", "connections.max.idle.ms": "9"},
            "less than connections.max",
        ),
        ({"control.plane.listener.name": "INSIDE"}, "differ from the listener that brokers use among themselves"),
        ({"control.plane.listener.name": "INSIDE", "advertised.listeners": "OUTSIDE://o:1"}, "no such name"),
    ],
)
def test_listeners_that_could_not_be_used_are_refused(properties: dict[str, str], why: str) -> None:
    with pytest.raises(SettingError, match=why):
        plan_listeners(Config(TWO | properties), is_alone=False)


def test_where_brokers_meet_and_where_the_controller_reaches_them() -> None:
    plan = plan_listeners(Config(TWO), is_alone=False)
    assert (plan.inter_broker, plan.control_plane) == ("INSIDE", "INSIDE")
    plan = plan_listeners(Config(TWO | {"control.plane.listener.name": "outside"}), is_alone=False)
    assert (plan.inter_broker, plan.control_plane) == ("INSIDE", "OUTSIDE")


def test_a_broker_that_is_alone_needs_no_listener_for_others() -> None:
    assert plan_listeners(Config(TWO | {"security.inter.broker.protocol": "SSL"}), is_alone=True)
