"""The driver of a formation: the task that forms or joins a cluster before a node's server starts.

All waiting, reading and writing of a formation is here.

``form_cluster`` returns once the log directories are formatted, at once where they are already. Until then the node listens
where its controller will, asks the others of its list again and again, and does what ``FormationNode`` says. What follows from a
message is on disk before anything else is said.
"""

from __future__ import annotations

import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import trio

from ..base.config import Config
from ..base.errors import KafkaError, ProtocolError
from ..base.loop_turns import LoopTurns
from ..base.network import Connection, Network, receive_exactly
from ..base.seams import Clock, SystemClock, TrioWorkers, Workers
from ..base.settings import SettingError
from ..base.tcp import TcpNetwork
from ..controller.quorum.active.committed_metadata import CommittedMetadata
from ..controller.quorum.settings import CONTROLLER_ROLE, QuorumSettings
from ..handlers.call import NodeCall
from ..handlers.controller.table import SERVED_BY_CONTROLLERS
from ..handlers.node_services import NodeServices
from ..handlers.table import ServedApis
from ..log.checkpoints import LOCK
from ..log.disk import Disk, Lock, OsDisk, join
from ..log.log_directories import LogStartError, metadata_log_dir_of
from ..security.client_quotas import ClientQuotas
from ..security.quota_settings import ClientQuotaSettings
from ..wire.api_keys import ApiKey
from ..wire.schema import uuid_to_text
from .auth.access import make_authorizer
from .config_file import load_config
from .controller_listeners import ControllerListeners, controller_names, controllers_listener
from .directories.directory_ids import random_directory_id
from .formation.messages import MOST_FORMATION_BYTES, RefusedStatementError, decode_response, encode_request
from .formation.node_list import parse_nodes
from .formation.protocol import FormationNode, FormationProposal, FormationRefusedError, FormationStatement, shown_list
from .formation.record import FormationStore, has_feature_levels, initial_feature_levels
from .formation_settings import FormationSettings
from .identity import check_roles, configured_broker_id, has_role, log_directories
from .listeners.acceptor import Acceptor
from .listeners.bound_listeners import CannotListenError
from .listeners.connection_limits import ConnectionLimits
from .listeners.monitor import Monitor
from .server import check_distinct, start_error

logger = logging.getLogger(__name__)

_ASK_SECONDS = 0.2
_ASK_LATER_SECONDS = 1.0
_QUICK_ROUNDS = 100
"""So many times a node is asked soon again, then less often."""
_RESPONSE_SECONDS = 3.0
_TELL_SECONDS = 1.0
_REPORT_SECONDS = 30.0
_LOOK_SECONDS = 1.0
_ENDED = "it ended the connection; do both nodes have the same secret, and run Ottla?"
_SERVED = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.API_VERSIONS)


async def form_cluster(
    config: Config,
    *,
    network: Network | None = None,
    clock: Clock | None = None,
    workers: Workers | None = None,
    disk: Disk | None = None,
    randomness: random.Random | None = None,
) -> None:
    """See the module. Raises StartError."""
    workers = workers or TrioWorkers()
    formation = Formation(
        config,
        network or TcpNetwork(workers),
        clock or SystemClock(),
        workers,
        disk or OsDisk(),
        randomness or random.SystemRandom(),
    )
    try:
        await formation.run()
    except* (CannotListenError, FormationRefusedError, KafkaError, LogStartError, OSError, SettingError) as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        assert isinstance(error, Exception)
        raise start_error(error) from error


class Formation:
    """One node that is not formatted yet."""

    def __init__(
        self,
        config: Config,
        network: Network,
        clock: Clock,
        workers: Workers,
        disk: Disk,
        randomness: random.Random,
    ) -> None:
        self._config = load_config(config.properties)
        self._network = network
        self._clock = clock
        self._workers = workers
        self._randomness = randomness
        directories = log_directories(config)
        check_distinct(directories)
        metadata = metadata_log_dir_of(config.settings(QuorumSettings).metadata_log_dir, directories)
        self._store = FormationStore(disk, directories, metadata)
        self._disk = disk
        self._nodes = parse_nodes(",".join(config.settings(FormationSettings).nodes))
        self._settling = trio.Lock()
        self._is_decided = trio.Event()
        self._unreached: dict[int, str] = {}
        self._correlation_id = 0
        self._node: FormationNode

    async def run(self) -> None:
        """Return once the directories are formatted. Raises as ``form_cluster``, in groups as well."""
        check_roles(self._config)
        store = self._store
        await self._workers.run(store.make_log_dirs)
        with self._locked():
            if await self._workers.run(store.is_formatted):
                return
            record = await self._workers.run(store.load, self._randomness)
            node_id = configured_broker_id(self._config)
            assert node_id is not None, "check_roles asks for it"
            self._node = FormationNode(node_id, self._nodes, record, self._new_proposal, has_feature_levels)
            await self._agree()
            name = controller_names(self._config)[0]
            now_ms = self._clock.now_ms()
            await self._workers.run(store.format, node_id, self._node.record, name, self._randomness, now_ms)
            logger.info("Node %d is formatted for cluster %s", node_id, self._node.record.cluster_id)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the directories, as a running node does. Raises LogStartError."""
        locks: list[Lock] = []
        try:
            for folder in self._store.all_log_dirs:
                try:
                    locks.append(self._disk.lock(join(folder, LOCK)))
                except BlockingIOError:
                    why = f"the log directory {folder} is in use by another process"
                    raise LogStartError(why, may_pass=True) from None
            yield
        finally:
            for lock in locks:
                lock.close()

    def _new_proposal(self, ballot: int, directories: tuple[bytes, ...]) -> FormationProposal:
        cluster_id = uuid_to_text(random_directory_id(self._randomness))
        return FormationProposal(ballot, cluster_id, self._clock.now_ms(), initial_feature_levels(), directories)

    async def _agree(self) -> None:
        """Listen and ask until it is decided of which cluster this node is, and tell the others then."""
        node, listeners = self._node, None
        if node.is_listed and has_role(self._config, CONTROLLER_ROLE):
            listeners = ControllerListeners(self._config, self._network, self._workers, self._respond)
            await listeners.bind()
        self._log_beginning()
        secure = controllers_listener(self._config, self._workers).secure

        async def ask(place: int) -> None:
            host, port = self._nodes[place - 1]
            connection = await self._network.connect(host, port + 1)
            try:
                if secure is not None:
                    connection = (await secure(connection, host)).connection
                said = await self._exchange(connection)
            finally:
                connection.close()
            node.handle_response(place, said)

        try:
            async with trio.open_nursery() as nursery:
                if listeners is not None:
                    self._acceptor(listeners).start(listeners.served, nursery)
                for place in self._others:
                    nursery.start_soon(self._ask_always, place, ask)
                nursery.start_soon(self._report)
                await self._settle()
                await self._is_decided.wait()
                nursery.cancel_scope.cancel()
        finally:
            if listeners is not None:
                listeners.close()
        if node.is_listed:
            await self._send_decision(ask)

    @property
    def _others(self) -> list[int]:
        return [place for place in range(1, len(self._nodes) + 1) if place != self._node.node_id]

    async def _settle(self) -> None:
        """Put on disk what follows from what was heard."""
        node = self._node
        # One at a time: while a record is written another message may come, and what follows from both has to be built on it.
        async with self._settling:
            while (record := node.next_record()) is not None:
                await self._workers.run(self._store.save, record)
                node.persisted(record)
        if node.record.cluster_id is not None:
            self._is_decided.set()

    # --- the others ---------------------------------------------------------------------------------------------------

    async def _ask_always(self, place: int, ask: Callable[[int], Awaitable[None]]) -> None:
        rounds = 0
        while True:
            await self._ask(place, ask, _RESPONSE_SECONDS)
            await self._settle()
            rounds += 1
            await trio.sleep(_ASK_SECONDS if rounds < _QUICK_ROUNDS else _ASK_LATER_SECONDS)

    async def _ask(self, place: int, ask: Callable[[int], Awaitable[None]], seconds: float) -> None:
        """Ask a node once; why that gave no response is kept for the report."""
        try:
            with trio.fail_after(seconds):
                await ask(place)
        except trio.TooSlowError:
            self._unreached[place] = f"no response within {seconds:g} s"
        except OSError as error:
            self._unreached[place] = error.strerror or str(error)
        except (ProtocolError, RefusedStatementError) as error:
            self._unreached[place] = str(error)
        else:
            self._unreached.pop(place, None)

    async def _send_decision(self, ask: Callable[[int], Awaitable[None]]) -> None:
        """The others would find out by asking, but only when this node's server listens again."""
        async with trio.open_nursery() as nursery:
            for place in self._others:
                nursery.start_soon(self._ask, place, ask, _TELL_SECONDS)

    async def _exchange(self, connection: Connection) -> FormationStatement:
        """Raises OSError, ProtocolError, RefusedStatementError."""
        self._correlation_id += 1
        await connection.send([encode_request(self._node.statement, self._correlation_id)])
        size = int.from_bytes(await receive_exactly(connection, 4, _ENDED))
        if not 4 <= size <= MOST_FORMATION_BYTES:
            raise ProtocolError("it is not a node of Ottla")
        return decode_response(bytes(await receive_exactly(connection, size, _ENDED)))

    # --- this node's listener -----------------------------------------------------------------------------------------

    def _acceptor(self, listeners: ControllerListeners) -> Acceptor:
        config = listeners.config
        authorizer = make_authorizer(config, self._clock)
        if authorizer is not None:
            # Only super users are let in: rules are in the metadata log, which there is not yet.
            authorizer.is_loaded = False
        services = NodeServices(
            node_id=self._node.node_id,
            cluster_id="",
            config=config,
            clock=self._clock,
            workers=self._workers,
            metadata=CommittedMetadata(),
            group_turns=LoopTurns(self._clock.elapsed),
            client_quotas=ClientQuotas(config.settings(ClientQuotaSettings)),
            token_passwords=None,
            authorizer=authorizer,
            served=ServedApis({int(key): SERVED_BY_CONTROLLERS.by_key[key] for key in _SERVED}),
        )
        return Acceptor(
            services,
            partial(NodeCall, services),
            Monitor(),
            ConnectionLimits(config, "", {each.name for each in listeners.served}),
        )

    async def _respond(self, _call: NodeCall, said: FormationStatement) -> FormationStatement:
        self._node.handle_request(said)
        await self._settle()
        return self._node.statement

    # --- what a user is told ------------------------------------------------------------------------------------------

    def _log_beginning(self) -> None:
        node = self._node
        if node.is_listed:
            shown = shown_list(self._nodes)
            logger.info("Node %d forms a cluster with the others of %s, or joins theirs", node.node_id, shown)
        else:
            logger.info("Node %d joins the cluster of %s", node.node_id, shown_list(self._nodes))

    async def _report(self) -> None:
        """A line on what is waited for when that changes, and again now and then."""
        last, at = "", 0.0
        while True:
            await trio.sleep(_LOOK_SECONDS)
            why = "; ".join(f"node {place} at {self._nodes[place - 1]}: {text}" for place, text in self._hindrances())
            if why and (why != last or trio.current_time() - at >= _REPORT_SECONDS):
                level = logging.ERROR if self._node.complaints else logging.INFO
                logger.log(level, "No cluster is formed or joined yet. %s", why)
                last, at = why, trio.current_time()

    def _hindrances(self) -> list[tuple[int, str]]:
        return sorted({**self._unreached, **self._node.complaints}.items())
