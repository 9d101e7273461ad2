"""A broker in a cluster of ZooKeeper mode, on a double of ZooKeeper in memory, and the choice between both kinds of cluster.

What controllers handle is tested on both: a test module that imports ``on_both_kinds`` runs each test of its ``broker`` on a
quorum and on a ZooKeeper.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import trio

import ottla
from ottla.base.seams import SystemClock
from ottla.broker.config_file import load_config
from ottla.broker.embedded import RunningBroker, describe
from ottla.broker.server import BrokerServer
from ottla.testing.clock import AdjustableClock
from ottla.testing.held_port import HeldPorts
from ottla.testing.loop_thread import LoopThread
from ottla.tests.zookeeper_double.embedded_store import EmbeddedStore
from ottla.wire.api_keys import ApiKey

from .memory_cluster import MemoryCluster, SharedZooKeeper, running_as

QUORUM, ZOOKEEPER = "quorum", "zookeeper"

SHARE_COORDINATOR = frozenset(
    {
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    }
)
"""What brokers of a quorum ask each other."""
SHARE_MEMBERS = frozenset({ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE})
"""What members of share groups ask the leaders of partitions, in a quorum."""
AMONG_BROKERS_ON_A_ZOOKEEPER = frozenset(
    {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.ALTER_PARTITION,
        ApiKey.ALLOCATE_PRODUCER_IDS,
    }
)
"""What brokers of a quorum do not serve."""

_ON_ONE_BROKER = {
    "broker.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}

StartedBroker = ottla.Broker | RunningBroker
NewBroker = Callable[..., contextlib.AbstractContextManager[StartedBroker]]
"""``data_dir`` and ``properties`` as for ``ottla.Broker``. A broker on the log directory of an earlier one is in its cluster."""


@pytest.fixture(scope="module", params=[QUORUM, ZOOKEEPER], name="cluster_kind")
def on_both_kinds(request: pytest.FixtureRequest) -> str:
    """A quorum of one node, and a broker on a ZooKeeper."""
    return str(request.param)


class QuorumOfOne(MemoryCluster):
    """Its only broker is a quorum by itself."""

    def home(self, broker_id: int) -> None:
        return None


def running_one(kind: str, **properties: str) -> contextlib.AbstractAsyncContextManager[MemoryCluster]:
    """A broker of this kind in memory, ready."""
    return running_as(QuorumOfOne if kind == QUORUM else MemoryCluster, 1, **properties)


def broker_factory(kind: str) -> NewBroker:
    """Makes brokers of this kind."""
    if kind == QUORUM:
        return ottla.Broker
    stores: dict[Path, EmbeddedStore] = {}

    @contextlib.contextmanager
    def new_broker(
        *, data_dir: Path | None = None, properties: Mapping[str, str] | None = None
    ) -> Iterator[RunningBroker]:
        with contextlib.ExitStack() as stack:
            folder = data_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ottla-")))
            store = stores.setdefault(folder, EmbeddedStore(SystemClock()))
            ports = stack.enter_context(contextlib.closing(HeldPorts()))
            given = ports.fill_in({**_ON_ONE_BROKER, "log.dirs": str(folder), **(properties or {})})
            yield stack.enter_context(_running(given, store))

    return new_broker


@contextlib.contextmanager
def _running(properties: Mapping[str, str], store: EmbeddedStore) -> Iterator[RunningBroker]:
    """The only broker on ``store``, in a thread of its own."""
    loop = LoopThread("broker", AdjustableClock())
    server = BrokerServer(load_config(properties), home=SharedZooKeeper(store))

    async def serve() -> None:
        ready = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.serve, ready.set)
            await ready.wait()
            await loop.wait_stop()
            server.stop()

    loop.start(serve)
    try:
        yield describe(server)
    finally:
        loop.stop()
