"""``cluster.nodes``: the list of a cluster's first nodes, and the Kafka properties derived from it.

Pure: no clock, no I/O.

- Node i is the i-th of the list. Clients reach it at its HOST:PORT, 9092 where there is none. Its controller is at the next port.
- A node of the list is broker and controller, and a voter. One with a higher number is a broker, and has an address of its own.
- On loopback a node listens where the list says; elsewhere on all addresses of its machine, since the host of the list may be one
  that its machine does not have (behind NAT), or that it takes for a loopback address itself.
- A property that is given stays.

Beyond loopback the controllers' listener needs a secret or certificates: whoever reaches it could become part of the cluster.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...base.addresses import DEFAULT_PORT, HIGHEST_PORT, join_host_port, split_host_port
from ...base.settings import SettingError
from ...controller.quorum.settings import BROKER_ROLE, CONTROLLER_ROLE
from ..formation_settings import SECRET, SECRET_USER
from ..listeners.open_listeners import is_on_loopback
from .protocol import ListedNode, NodeList, shown_list

CONTROLLER_LISTENER = "CONTROLLER"
SECRET_MECHANISM = "SCRAM-SHA-512"
NODES = "cluster.nodes"

_HIGHEST_FACTOR = 3
_MAP = "listener.security.protocol.map"


def parse_nodes(text: str) -> NodeList:
    """HOST or HOST:PORT with commas between. Raises SettingError."""
    nodes = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        try:
            host, port = split_host_port(item, DEFAULT_PORT)
        except ValueError as error:
            raise SettingError(NODES, text, str(error)) from None
        if not host or not 0 < port < HIGHEST_PORT:
            raise SettingError(
                NODES, text, f"{item!r} is not an address that other nodes can reach, with the next port free"
            )
        nodes.append(ListedNode(host.lower(), port))
    if not nodes:
        raise SettingError(NODES, text, "it lists no node")
    places = [(node.host, port) for node in nodes for port in (node.port, node.port + 1)]
    if len({*places}) < len(places):
        raise SettingError(NODES, text, "two nodes have one address: each needs its port and the next one")
    return tuple(nodes)


def controller_addresses(nodes: NodeList) -> list[str]:
    return [join_host_port(node.host, node.port + 1) for node in nodes]


def node_number(given: Mapping[str, str]) -> int:
    """``node.id``. Raises SettingError."""
    text = given.get("node.id", "").strip()
    if not text.isdecimal() or int(text) < 1:
        raise SettingError("node.id", text, "a node of cluster.nodes needs its number, counted from 1 (--node)")
    return int(text)


def cluster_properties(
    given: Mapping[str, str], listen: str | None = None, advertise: str | None = None
) -> dict[str, str]:
    """All properties of the node whose given ones have ``cluster.nodes``. ``listen``, ``advertise``: HOST:PORT of its broker.

    Raises SettingError.
    """
    nodes, number = parse_nodes(given[NODES]), node_number(given)
    if "zookeeper.connect" in given:
        raise SettingError("zookeeper.connect", given["zookeeper.connect"], "cluster.nodes excludes it")
    is_listed = number <= len(nodes)
    meant = {
        "process.roles": f"{BROKER_ROLE},{CONTROLLER_ROLE}" if is_listed else BROKER_ROLE,
        "controller.quorum.bootstrap.servers": ",".join(controller_addresses(nodes)),
        "controller.listener.names": CONTROLLER_LISTENER,
        **_addresses(nodes, number, listen, advertise),
        **_factors(len(nodes)),
    }
    if is_listed:
        meant["controller.quorum.auto.join.enable"] = "true"
    if "log.dirs" not in given and "log.dir" not in given:
        meant["log.dirs"] = f"data-{number}"
    properties = {**meant, **given} | _secured({**meant, **given})
    _check_roles(properties, is_listed=is_listed)
    _check_security(properties, nodes)
    return properties


def _addresses(nodes: NodeList, number: int, listen: str | None, advertise: str | None) -> dict[str, str]:
    is_local = all(is_on_loopback(node.host) for node in nodes)
    try:
        bound = None if listen is None else split_host_port(listen, DEFAULT_PORT)
        told = None if advertise is None else split_host_port(advertise, DEFAULT_PORT)
    except ValueError as error:
        raise SettingError("listeners", listen or "", str(error)) from None
    if number > len(nodes):
        host, port = bound or ("localhost" if is_local else "", DEFAULT_PORT)
        found = {"listeners": f"PLAINTEXT://{join_host_port(host, port)}"}
        if told is not None:
            found["advertised.listeners"] = f"PLAINTEXT://{join_host_port(*told)}"
        return found
    own = nodes[number - 1]
    host, port = bound or (own.host if is_local else "", own.port)
    controller = f"{CONTROLLER_LISTENER}://{{}}"
    controller_host = own.host if is_local else host  # where clients may be let in, a stranger to the quorum is not
    return {
        "listeners": ",".join(
            (
                f"PLAINTEXT://{join_host_port(host, port)}",
                controller.format(join_host_port(controller_host, own.port + 1)),
            )
        ),
        "advertised.listeners": ",".join(
            (
                f"PLAINTEXT://{join_host_port(*(told or own))}",
                controller.format(join_host_port(own.host, own.port + 1)),
            )
        ),
    }


def _factors(count: int) -> dict[str, str]:
    factor = str(min(count, _HIGHEST_FACTOR))
    return {
        "default.replication.factor": factor,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "share.coordinator.state.topic.replication.factor": factor,
    }


def _secured(properties: Mapping[str, str]) -> dict[str, str]:
    """What the secret stands for: SCRAM at the controllers' listener, whose one user may do what nodes do."""
    found = {}
    protocol = "SASL_PLAINTEXT" if SECRET in properties else "PLAINTEXT"
    if _MAP not in properties:
        known = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
        found[_MAP] = ",".join([*(f"{each}:{each}" for each in known), f"{CONTROLLER_LISTENER}:{protocol}"])
    if SECRET not in properties:
        return found
    found[f"listener.name.{CONTROLLER_LISTENER.lower()}.sasl.enabled.mechanisms"] = SECRET_MECHANISM
    found["sasl.mechanism.controller.protocol"] = SECRET_MECHANISM
    if properties.get("authorizer.class.name"):
        users = [each for each in properties.get("super.users", "").split(";") if each.strip()]
        found["super.users"] = ";".join([*users, f"User:{SECRET_USER}"])
    return found


def _check_roles(properties: Mapping[str, str], *, is_listed: bool) -> None:
    roles = {each.strip() for each in properties["process.roles"].split(",")}
    if is_listed and CONTROLLER_ROLE not in roles:
        raise SettingError("process.roles", properties["process.roles"], "a node of cluster.nodes is a controller")


def _check_security(properties: Mapping[str, str], nodes: NodeList) -> None:
    """Raises SettingError where a stranger could become part of the cluster."""
    protocol = _controllers_protocol(properties)
    if SECRET in properties and not protocol.startswith("SASL_"):
        why = f"{_MAP} has {CONTROLLER_LISTENER}:{protocol}, which does not ask for the secret: SASL_PLAINTEXT or SASL_SSL does"
        raise SettingError(SECRET, properties[SECRET], why)
    if all(is_on_loopback(node.host) for node in nodes) or protocol.startswith("SASL_"):
        return
    asks = properties.get(
        f"listener.name.{CONTROLLER_LISTENER.lower()}.ssl.client.auth", properties.get("ssl.client.auth", "")
    )
    if protocol != "SSL" or asks.strip() != "required":
        why = (
            "beyond loopback every host that reaches a controller could join the cluster. Give all nodes one "
            f"secret (--cluster-secret-file FILE), or certificates ({_MAP} with {CONTROLLER_LISTENER}:SSL, a key "
            "store, a trust store, ssl.client.auth=required)"
        )
        raise SettingError(NODES, shown_list(nodes), why)


def _controllers_protocol(properties: Mapping[str, str]) -> str:
    name = properties["controller.listener.names"].split(",")[0].strip()
    found = re.search(rf"(?:^|,)\s*{re.escape(name)}\s*:\s*(\w+)", properties[_MAP], re.IGNORECASE)
    return "PLAINTEXT" if found is None else found[1].upper()
