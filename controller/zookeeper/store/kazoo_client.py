"""An adapter of the Kazoo library to one ZooKeeper session, which hides Kazoo and its thread from all other modules.

Kazoo has three threads, for the connection, for watches and for answers, so an event and an answer could change their order.
Here it has one, and everything that it reports comes into the loop by one door (``TrioToken.run_sync_soon``), in the order in
which it came from ZooKeeper. What comes when the loop has ended is dropped.

Other habits of Kazoo that end here:

- It calls watches that are lost with a connection, with an event type of their own. That is no event here.
- When a session has expired it opens another one by itself, and it takes a session with another id for the same. Here the
  session is over then: from that moment no connection is made.
- A transaction's errors are among its results. The error of the operation that was refused is between those of operations
  that were rolled back (RolledBackError) and that were not tried (RuntimeInconsistency).
- It has blocking calls: here only asynchronous ones are used, and its thread is ended by another thread.
"""

from __future__ import annotations

import functools
import logging
import socket
import ssl
import struct
import threading
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any

import trio
from kazoo import exceptions, security
from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import Connect
from kazoo.protocol.states import EventType as KazooEventType
from kazoo.protocol.states import KazooState, WatchedEvent, ZnodeStat
from kazoo.retry import KazooRetry

from .cluster_store import (
    BadVersionError,
    Check,
    ConnectionLossError,
    Create,
    Delete,
    EventType,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    Result,
    SessionExpiredError,
    Set,
    Stat,
    StoreError,
    WatchEvent,
    ZnodeWithStat,
    size_of,
)
from .zookeeper_acl import ZnodeAccess, access
from .zookeeper_session import Answer, Answered, Children, Exists, Get, Multi, Request, ZooKeeperSession
from .zookeeper_settings import SaslCredentials, ZooKeeperAddress

logger = logging.getLogger(__name__)

RECONNECT_SECONDS = 0.1
"""Before all servers are tried again; it doubles up to LAST_RECONNECT_SECONDS."""

LAST_RECONNECT_SECONDS = 1.0

MAX_REQUEST_BYTES = (1 << 20) - 1024
"""What ZooKeeper takes as one request (``jute.maxbuffer``, 1 MiB if not set); it ends the connection of a larger one."""

_ERRORS: dict[type[Exception], type[StoreError]] = {
    exceptions.NoNodeError: NoNodeError,
    exceptions.NodeExistsError: NodeExistsError,
    exceptions.BadVersionError: BadVersionError,
    exceptions.NotEmptyError: NotEmptyError,
    exceptions.ConnectionLoss: ConnectionLossError,
    exceptions.SessionExpiredError: SessionExpiredError,
    exceptions.ConnectionClosedError: SessionExpiredError,
    exceptions.AuthFailedError: SessionExpiredError,
}

_EVENTS = {
    KazooEventType.CREATED: EventType.CREATED,
    KazooEventType.DELETED: EventType.DELETED,
    KazooEventType.CHANGED: EventType.CHANGED,
    KazooEventType.CHILD: EventType.CHILDREN,
}

_ACLS = {
    ZnodeAccess.ALL: security.OPEN_ACL_UNSAFE,
    ZnodeAccess.READ_BY_ALL: [*security.CREATOR_ALL_ACL, *security.READ_ACL_UNSAFE],
    ZnodeAccess.CREATOR: security.CREATOR_ALL_ACL,
}


class KazooConnection:
    """The ``ZooKeeperConnection`` of one session, and the thread that keeps it. ``timeout`` is asked for in seconds."""

    def __init__(
        self,
        address: ZooKeeperAddress,
        timeout: float,
        tls: ssl.SSLContext | None,
        credentials: SaslCredentials | None,
        protect_nodes: bool,
    ) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._listener: ZooKeeperSession | None = None
        self.chroot = ""
        """The node below which paths are, empty for the root. It may be set once the connection is made."""
        self.is_over = False
        """Whether the session is over: no connection is made any more."""
        self._protect_nodes = protect_nodes
        self._session_id: int | None = None
        self._last_error = ""
        self._socket: socket.socket | None = None
        self._is_stopping = False
        handler = _Handler(self.tell, functools.partial(self._connect, timeout / len(address.servers), tls))
        self._client = KazooClient(
            hosts=str(address._replace(chroot="")),
            timeout=timeout,
            handler=handler,
            connection_retry=KazooRetry(max_tries=-1, delay=RECONNECT_SECONDS, max_delay=LAST_RECONNECT_SECONDS),
            logger=_QuietLogger(logging.getLogger("kazoo"), {}),
        )
        self._keeper = self._client._connection = _Keeper(self._client, credentials)
        self._client.add_listener(self._state_changed)

    def start(self, listener: ZooKeeperSession) -> None:
        """Connect, and again whenever the connection is lost, until the session has ended."""
        self._listener = listener
        self._client.start_async()

    @property
    def session_id(self) -> int:
        assert self._session_id is not None, "connected before"
        return self._session_id

    @property
    def last_error(self) -> str:
        """Why there is no connection, as far as it is known."""
        return self._keeper.refusal or self._last_error

    @property
    def timeout(self) -> float:
        return self._keeper.agreed_timeout_ms / 1000

    # --- in the loop --------------------------------------------------------------------------------------------------

    def send(self, request: Request, is_watched: bool, answered: Answered) -> None:
        watch = self._watch if is_watched else None
        match request:
            case Get(path):
                result = self._client.get_async(self._real(path), watch)
            case Exists(path):
                result = self._client.exists_async(self._real(path), watch)
            case Children(path):
                result = self._client.get_children_async(self._real(path), watch)
            case Multi(operations):
                size = sum(size_of(operation) for operation in operations)
                if size > MAX_REQUEST_BYTES:
                    path = operations[0].path
                    error = StoreError(path, f"a transaction of {size} bytes; ZooKeeper takes {MAX_REQUEST_BYTES}")
                    self.tell(answered, None, error)
                    return
                result = self._transaction(operations).commit_async()
        result.rawlink(functools.partial(self._answer, request, answered))

    def _answer(self, request: Request, answered: Answered, result: Any) -> None:
        path = "" if isinstance(request, Multi) else request.path
        try:
            answer = self._understood(request, result.get_nowait())
        except StoreError as error:
            answered(None, error)
        except exceptions.SessionMovedError as error:  # the connection is to a server that no longer has the session
            self.drop()
            answered(None, ConnectionLossError(path, repr(error)))
        except exceptions.KazooException as error:
            answered(None, _ERRORS.get(type(error), StoreError)(path, _why(error)))
        except Exception as error:
            logger.warning("A response of ZooKeeper is not understood: %r", error)
            self.drop()
            answered(None, ConnectionLossError(path, repr(error)))
        else:
            answered(answer, None)

    def _understood(self, request: Request, answer: Any) -> Answer:
        match request:
            case Get():
                data, stat = answer
                return ZnodeWithStat(data or b"", _stat(stat))
            case Exists():
                return None if answer is None else _stat(answer)
            case Children():
                return answer
            case Multi(operations):
                _raise_refused(operations, answer)
                return [self._result(one) for one in answer]

    def _transaction(self, operations: Sequence[Operation]) -> Any:
        transaction = self._client.transaction()
        for operation in operations:
            path = self._real(operation.path)
            match operation:
                case Create(_, data, ephemeral, sequence):
                    acl = _ACLS[access(operation.path, is_protected=self._protect_nodes)]
                    transaction.create(path, data, acl, ephemeral, sequence)
                case Set(_, data, version):
                    transaction.set_data(path, data, version)
                case Delete(_, version):
                    transaction.delete(path, version)
                case Check(_, version):
                    transaction.check(path, version)
        return transaction

    def _result(self, result: Any) -> Result:
        if isinstance(result, str):
            return self._shown(result)
        return _stat(result) if isinstance(result, ZnodeStat) else None

    def _real(self, path: str) -> str:
        return path if not self.chroot else self.chroot if path == "/" else self.chroot + path

    def _shown(self, path: str) -> str:
        return path.removeprefix(self.chroot) or "/"

    def _watch(self, event: WatchedEvent) -> None:
        kind = _EVENTS.get(event.type)
        if kind is not None:
            assert self._listener is not None
            self._listener.on_event(WatchEvent(kind, self._shown(event.path)))

    def _heard(self, state: str) -> None:
        assert self._listener is not None
        if state == KazooState.CONNECTED:
            self._listener.on_connected()
        elif state == KazooState.SUSPENDED:
            self._listener.on_lost()
        else:
            self._listener.on_expired()

    def drop(self) -> None:
        broken = self._socket
        if broken is not None:
            try:
                # What was not sent yet is not to arrive later, when another connection has taken the place of this one.
                broken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                socket.socket.shutdown(broken, socket.SHUT_RDWR)  # below TLS, which the thread may be reading by
            except OSError:
                pass  # it is broken already

    def stop(self) -> None:
        self._stop(None)

    def abandon(self) -> None:
        """End the connection without telling ZooKeeper that the session has ended, as if the process had died."""
        self.is_over = True
        self.drop()
        self.stop()

    async def end_session(self, limit: float) -> None:
        ended = trio.Event()
        self._stop(ended)
        with trio.move_on_after(limit):
            await ended.wait()
        self.drop()

    def _stop(self, ended: trio.Event | None) -> None:
        self.is_over = True
        if not self._is_stopping:
            self._is_stopping = True
            threading.Thread(target=self._end_thread, args=[ended], name="ottla-zookeeper-end", daemon=True).start()
        elif ended is not None:
            ended.set()

    # --- in other threads ---------------------------------------------------------------------------------------------

    def tell(self, function: Callable[..., object], *args: object) -> None:
        """The door: call ``function`` on the loop, after all that was told before. From any thread."""
        try:
            self._token.run_sync_soon(function, *args)
        except trio.RunFinishedError:
            self.is_over = True

    def _state_changed(self, state: str) -> None:
        """Kazoo's own thread tells, between two connections; nothing of Kazoo may be called."""
        if state == KazooState.CONNECTED:
            session_id = self._client.client_id[0]
            if self._session_id is None:
                self._session_id = session_id
            elif self._session_id != session_id:
                state = KazooState.LOST  # another session, which a proxy or another server has handed out unasked
        if state == KazooState.LOST:
            self.is_over = True
        self.tell(self._heard, state)

    def _connect(self, timeout: float, tls: ssl.SSLContext | None, address: Any, hostname: str) -> socket.socket:
        """A new connection, with TLS if that is set. Raises OSError, by which Kazoo tries the next server."""
        if self.is_over:
            raise OSError("the session is over")
        try:
            connection = socket.create_connection(address, timeout)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is not None:
                connection = _encrypted(connection, tls, hostname)
        except OSError as error:
            self._last_error = f"{hostname}: {error}"
            raise
        self._socket = connection
        return connection

    def _end_thread(self, ended: trio.Event | None) -> None:
        try:
            self._client.stop()
            self._client.close()
        finally:
            if ended is not None:
                self.tell(ended.set)


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """Kazoo's threads, except for those of watches and answers, in whose place the loop is."""

    def __init__(self, tell: Callable[..., None], connect: Callable[[Any, str], socket.socket]) -> None:
        super().__init__()
        self._connect = connect
        self.completion_queue = self.callback_queue = _Door(tell)
        self._running = True

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def spawn(self, func: Callable[..., object], *args: object, **kwargs: object) -> threading.Thread:
        thread = threading.Thread(target=func, args=args, kwargs=kwargs, name="ottla-zookeeper", daemon=True)
        thread.start()
        return thread

    def create_socket_pair(self) -> tuple[socket.socket, _Wakeup]:
        reader, writer = socket.socketpair()
        return reader, _Wakeup(writer)

    def create_connection(self, address: Any, hostname: str, **_: object) -> socket.socket:
        return self._connect(address, hostname)


class _Wakeup:
    """The socket by which Kazoo wakes its thread, with a byte for each request; a write from the loop never blocks.

    The socket is full after a few hundred bytes. Then it has at least as many bytes as there are requests in Kazoo's queue,
    because those of requests lost with a connection are still in it; so a byte may be left out.
    """

    def __init__(self, writer: socket.socket) -> None:
        writer.setblocking(False)
        self._writer = writer

    def send(self, data: bytes) -> int:
        try:
            return self._writer.send(data)
        except BlockingIOError:
            return 0

    def close(self) -> None:
        self._writer.close()


class _Door:
    """Takes the place of Kazoo's queue of calls, and hands them to the loop."""

    def __init__(self, tell: Callable[..., None]) -> None:
        self.put = tell


class _Keeper(ConnectionHandler):  # type: ignore[misc]
    """Kazoo's handler of the connection; notes what time-out ZooKeeper has agreed to, and why it has refused a log-in."""

    def __init__(self, client: KazooClient, credentials: SaslCredentials | None) -> None:
        sasl = None if credentials is None else {"mechanism": "DIGEST-MD5", **credentials._asdict()}
        super().__init__(client, client._conn_retry.copy(), logger=client.logger, sasl_options=sasl)
        self.agreed_timeout_ms: int = client._session_timeout
        self.refusal = ""

    def _invoke(self, timeout: float, request: Any, xid: int | None = None) -> Any:
        answer = super()._invoke(timeout, request, xid)
        if isinstance(request, Connect) and answer[0].time_out > 0:
            self.agreed_timeout_ms = answer[0].time_out
        return answer

    def _authenticate_with_sasl(self, host: str, timeout: float) -> None:
        try:
            super()._authenticate_with_sasl(host, timeout)
        except exceptions.AuthFailedError:
            self.refusal = "ZooKeeper does not take the name and password"
            raise


class _QuietLogger(logging.LoggerAdapter[logging.Logger]):
    """Logs what Kazoo warns of at every attempt at debug level only; what happens to the session, its owner logs."""

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        super().log(min(level, logging.DEBUG), msg, *args, **kwargs)

    def process(self, msg: object, kwargs: MutableMapping[str, Any]) -> tuple[object, MutableMapping[str, Any]]:
        return msg, kwargs


def _encrypted(connection: socket.socket, tls: ssl.SSLContext, hostname: str) -> socket.socket:
    try:
        return tls.wrap_socket(connection, server_hostname=hostname)
    except BaseException:
        connection.close()
        raise


def _raise_refused(operations: Sequence[Operation], results: Sequence[Any]) -> None:
    """Raise the error of the operation for which a transaction was refused, if it was."""
    for operation, result in zip(operations, results, strict=True):
        if isinstance(result, Exception) and not isinstance(
            result, exceptions.RolledBackError | exceptions.RuntimeInconsistency
        ):
            raise _ERRORS.get(type(result), StoreError)(operation.path, _why(result))


def _why(error: Exception) -> str:
    """What an error's message says beside its type; empty where the type is one of the store's own."""
    return "" if type(error) in _ERRORS else f"ZooKeeper refuses: {type(error).__name__}"


def _stat(stat: ZnodeStat) -> Stat:
    return Stat(
        czxid=stat.czxid,
        mzxid=stat.mzxid,
        created_ms=stat.ctime,
        modified_ms=stat.mtime,
        version=stat.version,
        ephemeral_owner=stat.ephemeralOwner,
        child_count=stat.numChildren,
    )
