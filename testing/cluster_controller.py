"""The controller of a cluster in this process: a node of its own beside the brokers, a quorum of one that no test can kill.

It serves the brokers over a network in memory, and keeps its metadata log in a folder, which is formatted when it starts there
for the first time. Folders of brokers are formatted with its cluster id.

Clients are told of one broker as the controller, as Kafka's brokers tell of one of themselves, and forward what they are sent.
Here all tell of the same broker, for as long as that is neither fenced nor about to stop; ``notified_broker`` is its id.

Everything here is called in the cluster's loop.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import trio

from ..base.config import Config
from ..base.seams import Clock, InlineWorkers, TrioWorkers, Workers
from ..broker.config_file import load_config
from ..broker.controller_only import ControllerOnlyServer
from ..broker.directories.directory_ids import random_directory_id
from ..broker.directories.format_directories import FormatError, Formatting, format_folders
from ..broker.identity import configured_broker_id, log_directories
from ..broker.server import BrokerFailedError, StartError
from ..controller.quorum.active.node import ControllerNode
from ..controller.quorum.settings import QuorumSettings
from ..controller.raft.voters import InitialVoter
from ..log.checkpoints import CorruptFileError, read_meta_properties
from ..log.disk import Disk
from ..log.log_directories import metadata_log_dir_of
from ..metadata.image import ClusterImage, TopicImage
from ..wire.schema import uuid_to_text
from .cluster_network import CONTROLLER_ADDRESS, CONTROLLER_ID, ClusterNetwork
from .controller_commands import ControllerCommands
from .mortal_disk import MortalDisk

LISTENER = "CONTROLLER"
QUORUM_PROPERTIES = {
    "controller.listener.names": LISTENER,
    "controller.quorum.bootstrap.servers": f"{CONTROLLER_ADDRESS[0]}:{CONTROLLER_ADDRESS[1]}",
}
"""What every node of the cluster has."""

_SHARERS = 100
"""Of the descriptors that a node may keep open, a controller needs a few."""
_OF_BROKERS = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "broker.rack",
        "console.listener",
        "control.plane.listener.name",
        "inter.broker.listener.name",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "metrics.listener",
        "security.inter.broker.protocol",
    }
)
"""Properties of all brokers that their controller must not have."""


class ClusterController:
    """The controller of a cluster in one process; ``start`` it once. ``is_kept``: whether its folder outlives the process."""

    def __init__(self, properties: Mapping[str, str], clock: Clock, network: ClusterNetwork, *, is_kept: bool) -> None:
        self._properties = {
            **{name: value for name, value in properties.items() if name not in _OF_BROKERS},
            **QUORUM_PROPERTIES,
            "process.roles": "controller",
            "node.id": str(CONTROLLER_ID),
            "listeners": f"{LISTENER}://{CONTROLLER_ADDRESS[0]}:{CONTROLLER_ADDRESS[1]}",
        }
        self._clock = clock
        self._network = network
        # Without threads all that is due has happened when every task of the loop waits: the clock is advanced by that.
        self._workers: Workers = TrioWorkers() if is_kept else InlineWorkers()
        self._disk: Disk = MortalDisk(_SHARERS, is_synced=is_kept)
        self._server: ControllerOnlyServer | None = None
        self._ended = trio.Event()
        self.on_change: Callable[[], None] = lambda: None
        """Called when something was committed."""
        self.failure: Exception | None = None
        """The error that has ended it."""
        self.on_failure: Callable[[Exception], None] = lambda error: None
        """Called with the error when the controller has ended by itself."""
        self.known_alive: Callable[[], Iterable[int]] = tuple
        """The brokers whose sessions never end, whatever the clock and the machine do: those that no test has made silent."""
        self.notified_broker: int | None = None
        self.cluster_id = ""
        """Empty before ``start``."""

    # --- life ---------------------------------------------------------------------------------------------------------

    async def start(self, nursery: trio.Nursery, folder: Path) -> None:
        """Run it in ``nursery``; returns once it is active. Raises StartError, SettingError, OSError."""
        config = load_config({**self._properties, "log.dirs": str(folder)})
        self._format(config, str(folder))
        self._server = ControllerOnlyServer(
            config, network=self._network.of_controller, clock=self._clock, workers=self._workers, disk=self._disk
        )
        is_ready = trio.Event()

        async def serve() -> None:
            assert self._server is not None
            try:
                await self._server.serve(is_ready.set)
            except (StartError, BrokerFailedError) as error:
                self.failure = error
                if is_ready.is_set():
                    self.on_failure(error)
            finally:
                is_ready.set()
                self._ended.set()

        nursery.start_soon(serve)
        await is_ready.wait()
        if self.failure is not None:
            raise self.failure
        controller = self._node.controller
        controller.known_alive = self.known_alive
        controller.metadata.publishers.append(lambda delta, image: self._follow(image))
        while not controller.is_active or self.image.features is None:
            await trio.sleep(0)

    def _format(self, config: Config, folder: str) -> None:
        """Format its folder, if that is new. Raises StartError, OSError."""
        try:
            meta = read_meta_properties(self._disk, folder)
        except CorruptFileError as error:
            raise StartError(str(error)) from None
        if meta is not None and meta.cluster_id is not None:
            self.cluster_id = meta.cluster_id
            return
        self.cluster_id = uuid_to_text(random_directory_id(random.SystemRandom()))
        voter = InitialVoter(CONTROLLER_ID, *CONTROLLER_ADDRESS, random_directory_id(random.SystemRandom()))
        self.format_node(config, voters=[voter])

    def format_node(self, config: Config, voters: Sequence[InitialVoter] = ()) -> None:
        """Format those of a node's folders that are new, for this cluster. Raises StartError, OSError."""
        folders = log_directories(config)
        metadata_log_dir = metadata_log_dir_of(config.settings(QuorumSettings).metadata_log_dir, folders)
        node_id = configured_broker_id(config)
        assert node_id is not None
        wanted = Formatting(
            node_id,
            self.cluster_id,
            list(dict.fromkeys([*folders, metadata_log_dir])),
            metadata_log_dir,
            LISTENER,
            is_dynamic=True,
            is_controller=True,  # the first records of brokers are read by nobody
            voters=voters,
            ignores_formatted=True,
        )
        try:
            format_folders(self._disk, wanted, random.SystemRandom(), self._clock.now_ms(), lambda line: None)
        except FormatError as error:
            raise StartError(str(error)) from None

    async def stop(self) -> None:
        """End it in an orderly way. Does nothing if it was not started, or has ended."""
        if self._server is not None:
            self._server.stop()
            await self._ended.wait()

    @property
    def _node(self) -> ControllerNode:
        assert self._server is not None and self._server.role is not None, "the controller was started"
        return self._server.role.node

    # --- what is committed --------------------------------------------------------------------------------------------

    @property
    def image(self) -> ClusterImage:
        """The cluster's metadata, as far as it is committed."""
        return self._node.controller.committed_state.image

    def topic(self, name: str) -> TopicImage | None:
        """A topic as of now."""
        return self.image.topics.newest().get(name)

    def _follow(self, image: ClusterImage) -> None:
        if (told := self.notified_broker) is None or not _is_active(image, told):
            active = [broker_id for broker_id in image.quorum_brokers.newest() if _is_active(image, broker_id)]
            self.notified_broker = min(active, default=None)
        self.on_change()

    @property
    def commands(self) -> ControllerCommands:
        """What a test has the controller do."""
        return ControllerCommands(self._node)


def _is_active(image: ClusterImage, broker_id: int) -> bool:
    broker = image.quorum_brokers.newest().get(broker_id)
    return broker is not None and not broker.is_fenced and not broker.is_shutting_down
