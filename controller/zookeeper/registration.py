"""The registration of a broker: the cluster id, the broker id, and the znode under ``/brokers/ids``."""

from __future__ import annotations

import logging
import math
import random

import trio

from ...base.addresses import join_host_port
from ...base.errors import ErrorCode, KafkaError
from ...base.seams import Clock
from ...metadata.types import BrokerRegistration
from ...wire.schema import uuid_to_text
from ..random_uuids import random_uuid
from .nodes import znodes
from .state.loading import load_brokers
from .store.cluster_store import (
    ClusterStore,
    ConnectionLossError,
    Create,
    NodeExistsError,
    Set,
    Stat,
    ensure_paths,
)
from .store.session import StoreSession

logger = logging.getLogger(__name__)

_MARGIN_SECONDS = 1.0


async def ensure_cluster(store: ClusterStore, randomness: random.Random, known_id: str | None = None) -> str:
    """Make what every cluster store has, and return the cluster's id.

    ``known_id`` is the one that the cluster has if it is made only now. Raises StoreError.
    """
    await ensure_paths(store, znodes.PERSISTENT_PATHS)
    while True:
        cluster_id = await find_cluster(store)
        if cluster_id is not None:
            return cluster_id
        proposed = known_id or uuid_to_text(random_uuid(randomness))
        try:
            await store.multi([Create(znodes.CLUSTER_ID, znodes.encode_cluster_id(proposed))])
        except (NodeExistsError, ConnectionLossError):
            continue


async def find_cluster(store: ClusterStore) -> str | None:
    """The id of the cluster whose state is in the store; None for a store without one. Raises StoreError."""
    (node,) = await store.get_many([znodes.CLUSTER_ID])
    return None if node is None else znodes.decode_cluster_id(node.data)


async def generate_broker_id(store: ClusterStore, reserved_max_id: int) -> int:
    """An id above the reserved ones that no other broker is given (KafkaZkClient.generateBrokerSequenceId). Raises StoreError."""
    while True:
        try:
            (stat,) = await store.multi([Set(znodes.BROKER_SEQUENCE, b"")])
        except ConnectionLossError:
            continue  # a number that is not used does no harm
        assert isinstance(stat, Stat)
        return reserved_max_id + stat.version


async def register_broker(store: ClusterStore, registration: BrokerRegistration, clock: Clock) -> int:
    """Make the broker's node and return its epoch, the zxid of the registration (KIP-380).

    The node goes away with the store's session. Raises KafkaError DUPLICATE_BROKER_REGISTRATION while another broker
    with this id is registered.
    """
    path = znodes.broker_path(registration.broker_id)
    data = znodes.encode_broker(registration, clock.now_ms())
    try:
        results = await store.multi([Create(path, data, ephemeral=True), Set(path, data)])
    except NodeExistsError:
        there = await store.exists(path)
        if there is not None and there.ephemeral_owner == store.session_id:
            return there.czxid  # the answer to this registration was lost with a connection
        other = (await load_brokers(store)).get(registration.broker_id)
        where = "" if other is None else f" by a broker at {_addresses(other.registration)}"
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"broker.id {registration.broker_id} is registered already{where}: each broker needs a different one",
        ) from None
    stat = results[1]
    assert isinstance(stat, Stat)
    return stat.czxid


async def update_broker(store: ClusterStore, registration: BrokerRegistration, clock: Clock) -> None:
    """Change what the broker's node says; its epoch stays (KafkaZkClient.updateBrokerInfo). Raises StoreError."""
    while True:
        try:
            await store.multi(
                [Set(znodes.broker_path(registration.broker_id), znodes.encode_broker(registration, clock.now_ms()))]
            )
            return
        except ConnectionLossError:
            continue  # writing it twice does no harm


def _addresses(registration: BrokerRegistration) -> str:
    return ", ".join(join_host_port(endpoint.host, endpoint.port) for endpoint in registration.endpoints)


async def register_when_free(store: StoreSession, registration: BrokerRegistration, clock: Clock) -> int:
    """``register_broker``, after the session that a broker killed a moment ago left behind has timed out.

    Kafka's start fails there. If the id is registered for longer than a session's time-out, another broker has it and lives:
    raises KafkaError DUPLICATE_BROKER_REGISTRATION, as for a broker with another id that has one of the addresses.
    """
    patience = 0.0 if store.timeout == math.inf else store.timeout + _MARGIN_SECONDS
    changed = trio.Event()
    with trio.move_on_after(patience):
        if await store.exists(znodes.broker_path(registration.broker_id), lambda _: changed.set()) is not None:
            logger.warning(
                "A broker with id %d is registered; waiting %g s at most for its session to end",
                registration.broker_id,
                patience,
            )
            await changed.wait()
    await _check_addresses(store, registration)
    return await register_broker(store, registration, clock)


async def _check_addresses(store: ClusterStore, registration: BrokerRegistration) -> None:
    """Clients that ask for this broker must not find another one (KafkaServer.createBrokerInfo).

    Raises KafkaError DUPLICATE_BROKER_REGISTRATION when another broker is registered with one of its addresses.
    """
    own = {(endpoint.host, endpoint.port) for endpoint in registration.endpoints}
    for broker_id, broker in (await load_brokers(store)).items():
        shared = sorted(own.intersection((e.host, e.port) for e in broker.registration.endpoints))
        if shared and broker_id != registration.broker_id:
            addresses = ", ".join(join_host_port(host, port) for host, port in shared)
            raise KafkaError(
                ErrorCode.DUPLICATE_BROKER_REGISTRATION,
                f"Configured end points {addresses} in advertised listeners are already registered by broker {broker_id}",
            )


async def report_log_dir_failure(store: ClusterStore, broker_id: int) -> None:
    """Tell the controller that a log directory of this broker has failed (KIP-112). Raises StoreError."""
    while True:
        try:
            await store.multi(
                [Create(znodes.LOG_DIR_EVENT_PREFIX, znodes.encode_log_dir_event(broker_id), sequence=True)]
            )
            return
        except ConnectionLossError:
            continue  # telling it twice does no harm
