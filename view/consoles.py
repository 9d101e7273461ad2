"""The addresses of the consoles of a cluster's brokers, from each broker's ``console.listener``.

A broker that has none, or is no Ottla, says nothing of it; one whose port was picked when it started says 0, which is no address.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from ..base.addresses import join_host_port, split_host_port
from ..base.errors import KafkaError
from ..broker.listeners.open_listeners import is_on_loopback
from ..replication.peers import Peers
from ..wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)

_BROKER = 4
_NAME = "console.listener"
_SECONDS = 5.0
_ANY_ADDRESS = ("", "0.0.0.0", "::")

Ask = Callable[[int, DescribeConfigsRequest], Awaitable[tuple[DescribeConfigsResponse, str]]]
"""A broker's response, and the host where it was reached. Raises OSError, KafkaError."""


def asked_by(peers: Peers) -> Ask:
    """By the way that brokers take among themselves."""

    async def ask(broker_id: int, request: DescribeConfigsRequest) -> tuple[DescribeConfigsResponse, str]:
        client = peers.client(broker_id, "consoles", timeout=_SECONDS)
        version = await client.negotiate(DescribeConfigsRequest)
        return await client.send(request, version), split_host_port(client.peer)[0]

    return ask


async def find_consoles(brokers: Iterable[int], ask: Ask) -> dict[int, str]:
    """The addresses by broker, as a browser takes them; those that can be reached from elsewhere, or are on this machine."""
    found = {}
    for broker_id in brokers:
        resource = DescribeConfigsResource(
            resource_type=_BROKER, resource_name=str(broker_id), configuration_keys=[_NAME]
        )
        try:
            response, host = await ask(broker_id, DescribeConfigsRequest(resources=[resource]))
        except (OSError, KafkaError):
            continue
        address = _address(response, host)
        if address is not None:
            found[broker_id] = address
    return found


def _address(response: DescribeConfigsResponse, broker_host: str) -> str | None:
    values = [entry.value for result in response.results for entry in result.configs if entry.name == _NAME]
    if not values or not values[0]:
        return None
    try:
        host, port = split_host_port(values[0])
    except ValueError:
        return None
    if host in _ANY_ADDRESS:
        host = broker_host
    elif is_on_loopback(host) and not is_on_loopback(broker_host):
        return None
    return f"http://{join_host_port(host, port)}/" if port else None
