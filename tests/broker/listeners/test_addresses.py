"""Listener addresses: what Docker set-ups write, and what is refused with a clear line."""

from __future__ import annotations

import pytest

from ottla.base.settings import SettingError
from ottla.broker.listeners.addresses import (
    ListenerAddress,
    advertised_endpoints,
    configured_listeners,
    inter_broker_listener,
)
from ottla.broker.settings import BrokerSettings


def settings(**properties: str) -> BrokerSettings:
    return BrokerSettings.from_properties({name.replace("_", "."): value for name, value in properties.items()})


def test_several_named_listeners_have_an_advertised_address_each() -> None:
    listeners, named = configured_listeners(
        settings(
            listeners="INTERNAL://0.0.0.0:29092,EXTERNAL://0.0.0.0:9092",
            advertised_listeners="INTERNAL://broker:29092,EXTERNAL://localhost:9092",
            listener_security_protocol_map="INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT",
        )
    )
    assert listeners == [ListenerAddress("INTERNAL", "0.0.0.0", 29092), ListenerAddress("EXTERNAL", "0.0.0.0", 9092)]
    assert [str(e) for e in advertised_endpoints(listeners, named, "127.0.0.1")] == [
        "INTERNAL://broker:29092",
        "EXTERNAL://localhost:9092",
    ]


KRAFT = {
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "advertised_listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller_listener_names": "CONTROLLER",
}


def test_a_controllers_listener_needs_no_protocol_map() -> None:
    for protocol_map in ({}, {"listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"}):
        listeners, named = configured_listeners(settings(**KRAFT, **protocol_map))
        assert [each.name for each in listeners] == [each.name for each in named] == ["PLAINTEXT", "CONTROLLER"]
        assert {each.security_protocol for each in listeners} == {"PLAINTEXT"}


def test_a_wildcard_address_is_never_advertised() -> None:
    bound = [ListenerAddress("PLAINTEXT", "0.0.0.0", 9092)]
    assert advertised_endpoints(bound, [], "127.0.0.1") == [ListenerAddress("PLAINTEXT", "127.0.0.1", 9092)]
    with pytest.raises(SettingError, match="name the host they reach"):
        configured_listeners(settings(advertised_listeners="PLAINTEXT://0.0.0.0:9092"))


def test_an_advertised_port_of_zero_is_the_bound_one() -> None:
    bound = [ListenerAddress("PLAINTEXT", "127.0.0.1", 40001)]
    named = [ListenerAddress("PLAINTEXT", "example.org", 0)]
    assert advertised_endpoints(bound, named, "127.0.0.1") == [ListenerAddress("PLAINTEXT", "example.org", 40001)]


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"listeners": "9092"}, "is not NAME://HOST:PORT"),
        ({"listeners": ""}, "no address in it"),
        ({"listeners": "OTHER://h:1"}, "does not name OTHER"),
        (KRAFT | {"controller_listener_names": ""}, "does not name CONTROLLER"),
        (KRAFT | {"listener_security_protocol_map": "PLAINTEXT:PLAINTEXT"}, "does not name CONTROLLER"),
        (KRAFT | {"listeners": "SSL://h:1,CONTROLLER://h:2"}, "does not name CONTROLLER"),
        ({"listeners": "PLAINTEXT://h:1,PLAINTEXT://h:2"}, "is given twice"),
        ({"listeners": "PLAINTEXT://h:1,SSL://i:1"}, "share a port"),
        ({"listeners": "PLAINTEXT://0.0.0.0:1,SSL://127.0.0.1:1"}, "share a port"),
        ({"listeners": "PLAINTEXT://0.0.0.0:1,SSL://[::]:1,SASL_SSL://h:1"}, "share a port"),
        ({"listeners": "PLAINTEXT://h:99999"}, "is not NAME://HOST:PORT"),
        ({"advertised_listeners": "SSL://h:1"}, "SSL is not among the listeners"),
        ({"listener_security_protocol_map": "A=PLAINTEXT"}, "is not NAME:PROTOCOL"),
    ],
)
def test_malformed_listeners_are_refused(properties: dict[str, str], why: str) -> None:
    with pytest.raises(SettingError, match=why):
        configured_listeners(settings(**properties))


def test_each_listener_has_the_protocol_of_the_map() -> None:
    protocol_map = "INSIDE:PLAINTEXT,OUTSIDE:SASL_SSL"
    listeners, named = configured_listeners(
        settings(
            listeners="INSIDE://h:1,OUTSIDE://h:2",
            advertised_listeners="OUTSIDE://example.org:9",
            listener_security_protocol_map=protocol_map,
        )
    )
    assert [each.security_protocol for each in listeners] == ["PLAINTEXT", "SASL_SSL"]
    assert [each.security_protocol for each in named] == ["SASL_SSL"]


def test_brokers_reach_one_another_by_the_listener_of_the_protocol_they_are_to_use() -> None:
    endpoints = [
        ListenerAddress("OUT", "h", 1),
        ListenerAddress("IN", "h", 2, "SSL"),
        ListenerAddress("SSL", "h", 3, "SSL"),
    ]
    assert inter_broker_listener(settings(), endpoints) == "OUT"
    assert inter_broker_listener(settings(security_inter_broker_protocol="SSL"), endpoints) == "SSL"
    assert inter_broker_listener(settings(security_inter_broker_protocol="SSL"), endpoints[:2]) == "IN"
    assert inter_broker_listener(settings(inter_broker_listener_name="in"), endpoints) == "IN"


def test_an_ipv4_and_an_ipv6_address_may_share_a_port() -> None:
    listeners, _ = configured_listeners(settings(listeners="PLAINTEXT://127.0.0.1:1,SSL://[::1]:1"))
    assert [str(each) for each in listeners] == ["PLAINTEXT://127.0.0.1:1", "SSL://[::1]:1"]


def test_where_addresses_are_named_the_other_listeners_are_not_advertised() -> None:
    bound = [ListenerAddress("INSIDE", "h", 1), ListenerAddress("OUTSIDE", "h", 2)]
    named = [ListenerAddress("OUTSIDE", "example.org", 3)]
    assert advertised_endpoints(bound, named, "127.0.0.1") == named
