"""Addresses as they are written on command lines and in settings."""

from __future__ import annotations

import pytest

from ottla.base.addresses import canonical_address, is_address, join_host_port, split_host_port, with_ports


def test_host_and_port() -> None:
    assert split_host_port("localhost:0") == ("localhost", 0)
    assert split_host_port(":9092") == ("", 9092)
    assert split_host_port("[::1]:9092") == ("::1", 9092)
    assert join_host_port("::1", 9092) == "[::1]:9092"


@pytest.mark.parametrize("text", ["localhost", "[::1]"])
def test_a_port_that_is_left_out(text: str) -> None:
    assert split_host_port(text, 9092) == (text.strip("[]"), 9092)
    with pytest.raises(ValueError, match="is not HOST:PORT"):
        split_host_port(text)


@pytest.mark.parametrize("text", ["", "9092", "localhost:", "localhost:x", "localhost:-1", "localhost:²"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match=r"^'.*' is not HOST:PORT$"):
        split_host_port(text, 9092)


def test_a_port_that_is_out_of_range() -> None:
    with pytest.raises(ValueError, match=r"^the port of 'localhost:65536' is out of range: 65535 is the highest$"):
        split_host_port("localhost:65536")
    with pytest.raises(ValueError, match=r"^the port of 'localhost:0' is out of range: 1 is the lowest$"):
        with_ports("a:1,localhost:0")


def test_addresses_of_several_brokers() -> None:
    assert with_ports("a:1, b,[::1],") == "a:1,b:9092,[::1]:9092"


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("0:0:0:0:0:ffff:a00:1", "10.0.0.1"),
        ("[0:0:0:0:0:0:0:1]", "::1"),
        ("2001:DB8:0:0:0:0:0:A", "2001:db8::a"),
        ("fe80:0:0:0:0:0:0:1%eth0", "fe80::1%eth0"),
        ("client", "client"),
        ("*", "*"),
    ],
)
def test_an_address_has_one_way_of_writing(written: str, canonical: str) -> None:
    assert canonical_address(written) == canonical


@pytest.mark.parametrize(
    ("text", "expected"), [("10.0.0.1", True), ("::1", True), ("localhost", False), ("10.0.0", False)]
)
def test_what_is_an_address(text: str, expected: bool) -> None:
    assert is_address(text) == expected
