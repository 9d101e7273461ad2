"""The core of every KRaft node: its metadata log, its Raft node and its connections to controllers.

A broker follows the quorum by it, a controller takes part in it, and a node with both roles does both on one Raft node.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable

from ..base.config import Config
from ..base.errors import KafkaError
from ..base.network import Network
from ..base.seams import Clock, Workers
from ..controller.quorum.channel import QuorumChannel
from ..controller.quorum.controller_client import Connect, ControllerPeer
from ..controller.quorum.registrations import ReplayError
from ..controller.quorum.settings import QuorumSettings
from ..controller.raft.driver import RaftDriver
from ..controller.raft.metadata_log import MetadataLog
from ..controller.raft.node import RaftNode
from ..controller.raft.quorum_state import RaftIdentity
from ..controller.raft.settings import MetadataLogSettings, RaftSettings
from ..controller.raft.storage import RaftStorage
from ..controller.raft.voter_set import Endpoints, ReplicaKey, VoterSet, address_of
from ..controller.raft.voters import ControllerAddress
from ..handlers.controller.services import ControllerServices
from ..log.checkpoints import CorruptFileError
from ..log.disk import join
from ..log.files import METADATA_PARTITION_DIR
from ..log.log_directories import LogStartError
from ..log.log_directory import LogDirectory
from ..replication.broker_client import BrokerClient
from .auth.peer_security import PeerListener
from .identity import bootstrap_controllers, static_voters
from .own_controller import OwnController


class RaftManager:
    """The metadata log and the Raft node. ``open`` it once the log directories are known to be this node's.

    Whoever opens it runs the ``driver``. ``controllers`` is how the controllers' listener is reached. ``endpoints`` are those of
    the node's own controller, if it has one: then it may be a voter.
    """

    driver: RaftDriver
    own_controller: ControllerServices | None = None
    """The controller in this process, once it is there: where it leads, it is called."""

    def __init__(
        self,
        config: Config,
        network: Network,
        clock: Clock,
        workers: Workers,
        randomness: random.Random,
        controllers: PeerListener,
        endpoints: Endpoints = (),
    ) -> None:
        self.settings = config.settings(QuorumSettings)
        self.log_settings = config.settings(MetadataLogSettings)
        self._times = config.settings(RaftSettings).times(self.settings.request_timeout_ms)
        self._network = network
        self._clock = clock
        self._workers = workers
        self._randomness = randomness
        self._controllers = controllers
        self._endpoints = endpoints
        self._node_id = -1

    async def open(
        self, folder: LogDirectory, others: Iterable[LogDirectory], key: ReplicaKey, cluster_id: str
    ) -> None:
        """Open the log in ``folder``, which ``others`` must not have, and make the driver.

        Raises LogStartError, SettingError, KafkaError, OSError.
        """
        folder.check_online()
        _check_place(folder, others)
        log = MetadataLog(folder, self.log_settings)
        try:
            await log.open()
        except CorruptFileError as error:
            raise LogStartError(str(error)) from None
        self._node_id = key.node_id
        listener = self._controllers.name
        node = RaftNode(
            RaftIdentity(cluster_id, key, self._endpoints, listener, may_vote=bool(self._endpoints)),
            self._times,
            log.outline(),
            bootstrap_controllers(self.settings),
            VoterSet.of_addresses(static_voters(self.settings), listener),
            self._randomness,
        )
        self.driver = RaftDriver(node, RaftStorage(log), self._connect_to_peer("raft"), self._clock, self._workers)

    def connect(self, purpose: str) -> Connect:
        """Makes connections to controllers, of one purpose each."""
        connect_to_peer, own_address = (
            self._connect_to_peer(purpose),
            address_of(self._endpoints, self._controllers.name),
        )

        def connect(address: ControllerAddress) -> ControllerPeer:
            if self.own_controller is not None and address == own_address:
                return OwnController(self.own_controller, self._client_id(purpose), self._timeout)
            return connect_to_peer(address)

        return connect

    def _connect_to_peer(self, purpose: str) -> Callable[[ControllerAddress], BrokerClient]:
        name, timeout = self._client_id(purpose), self._timeout

        def connect(address: ControllerAddress) -> BrokerClient:
            secure = self._controllers.secure
            return BrokerClient(self._network, *address, name, timeout=timeout, max_in_flight=1, secure=secure)

        return connect

    def _client_id(self, purpose: str) -> str:
        return f"{'controller' if self._endpoints else 'broker'}-{self._node_id}-{purpose}"

    @property
    def _timeout(self) -> float:
        return self.settings.request_timeout_ms / 1000

    def channel(self, purpose: str) -> QuorumChannel:
        """A way to the active controller."""
        node = self.driver.node
        channel = QuorumChannel(lambda: node.leader_address, self.connect(purpose))
        self.driver.on_leader_changed(channel.follow_leader)
        return channel


def _check_place(folder: LogDirectory, others: Iterable[LogDirectory]) -> None:
    """Refuse to pass over a metadata log elsewhere: ``metadata.log.dir`` was changed. Raises LogStartError."""
    for other in others:
        path = join(other.path, METADATA_PARTITION_DIR)
        if other is not folder and not other.is_offline and other.disk.is_dir(path):
            raise LogStartError(
                f"Found unexpected metadata location in data directory `{path}` (the configured metadata directory is "
                f"{folder.path})."
            )


async def run_guarded(run: Callable[[], Awaitable[None]], on_failure: Callable[[str], None]) -> None:
    """Tell ``on_failure`` why the metadata log cannot be kept or understood any more."""
    try:
        await run()
    except* (KafkaError, OSError, CorruptFileError, ReplayError) as group:
        error = _first(group)
        text = error.message if isinstance(error, KafkaError) else str(error)
        on_failure(f"the metadata log cannot be followed any more: {text}")


def _first(error: BaseException) -> BaseException:
    """The first one in a group, which may have groups in it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
