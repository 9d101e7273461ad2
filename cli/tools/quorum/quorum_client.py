"""The client of ``ottla cluster quorum`` and its siblings: through any broker, or directly to a controller.

A broker forwards such requests (KIP-919 calls the other way direct). Controllers serve no Metadata, which clients of kafka-python
begin with, so a controller is asked over a connection of this project's own. It needs the settings of the controllers' listener
(``--command-config``).
"""

from __future__ import annotations

import contextlib
import socket
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import kafka.errors

from ....base.addresses import join_host_port, split_host_port
from ....base.build_info import version
from ....base.errors import ErrorCode
from ....metadata.types import VersionRange
from ....wire.api_keys import ApiKey
from ....wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ....wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ....wire.schema import Message
from ..client import UNANSWERED, Admin, ClusterConnection
from ..direct_requests import ask, authenticate, secured
from ..running import ToolError, UsageError, refusal
from ..wire_request import WireRequest

_SECONDS = 30.0
_CONNECT_SECONDS = 5.0
_CONTROLLERS = 2
"""The type of the endpoints that DescribeCluster is to name."""
_WITH_FEATURES = (3, 4)
"""The versions of ApiVersions that tell features; from 4 on also those whose lowest level is 0."""
_NOBODY = -1


class Features(NamedTuple):
    """What a node supports, and the levels that it knows to be finalized."""

    supported: Mapping[str, VersionRange]
    finalized: Mapping[str, int]


class ControllerConnection:
    """A connection to one controller, which serves the requests of its listener. Use it in a ``with``.

    Raises ToolError, here and later, where it cannot be asked.
    """

    def __init__(self, host: str, port: int, options: Mapping[str, Any]) -> None:
        self.address = join_host_port(host, port)
        with self._failing():
            plain = socket.create_connection((host, port), timeout=_CONNECT_SECONDS)
            plain.settimeout(_SECONDS)
            try:
                self._socket = secured(plain, host, options)
                if options.get("security_protocol", "PLAINTEXT").startswith("SASL"):
                    authenticate(self._socket, host, self.address, options)
                served: ApiVersionsResponse = ask(self._socket, ApiVersionsRequest(), 0)
            except BaseException:
                plain.close()
                raise
        self._versions = {each.api_key: (each.min_version, each.max_version) for each in served.api_keys}

    def __enter__(self) -> ControllerConnection:
        return self

    def __exit__(self, *raised: object) -> None:
        self._socket.close()

    def ask(self, request: Message, lowest: int, highest: int) -> Any:
        """The response to a request of one of these versions, the highest that the node knows."""
        key = ApiKey(type(request).api_key)
        first, last = self._versions.get(int(key), (0, _NOBODY))
        chosen = min(last, highest)
        if chosen < max(first, lowest):
            raise ToolError(f"{self.address} does not take {key.name}: it is not a controller, or an older one")
        with self._failing():
            return ask(self._socket, request, chosen)

    def features(self) -> Features:
        """What this node supports."""
        return features_of(self.ask(_who_asks(), *_WITH_FEATURES))

    def describe_cluster(self) -> DescribeClusterResponse:
        """The controllers that have registered, by the addresses of this listener, and which of them is active."""
        response: DescribeClusterResponse = self.ask(DescribeClusterRequest(endpoint_type=_CONTROLLERS), 1, 1)
        if response.error_code:
            raise ToolError(refusal(response.error_code, response.error_message))
        return response

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise ToolError(
                f"no controller answers at {self.address} ({why}); security.protocol and the like have to be those of the "
                "controllers' listener (--command-config)"
            ) from None


class QuorumClient(ABC):
    """A way to the active controller."""

    def __init__(self, connection: ClusterConnection) -> None:
        self.options = connection.security_options()
        """kafka-python's, for connections to controllers."""

    @property
    @abstractmethod
    def cluster_id(self) -> str: ...

    @abstractmethod
    def ask(self, request: Message, lowest: int, highest: int) -> Any:
        """The active controller's response to a request of one of these versions. Raises ToolError, KafkaError."""

    @abstractmethod
    def find_again(self) -> None:
        """Another controller may be active by now."""

    @abstractmethod
    def broker_features(self) -> dict[int, Features | None]:
        """Those of each registered broker, as far as this way leads to brokers; None of one that is down."""

    @abstractmethod
    def finalized(self) -> Mapping[str, int]:
        """The levels that are finalized."""

    @abstractmethod
    def close(self) -> None: ...


class ByBrokers(QuorumClient):
    """Through any broker of the cluster."""

    def __init__(self, connection: ClusterConnection) -> None:
        super().__init__(connection)
        self._admin: Admin = connection.admin()

    @property
    def cluster_id(self) -> str:
        return str(self._admin.describe_cluster()["cluster_id"])

    def ask(self, request: Message, lowest: int, highest: int) -> Any:
        try:
            return self._admin.ask(WireRequest(request, lowest, highest))
        except kafka.errors.IncompatibleBrokerVersion:
            raise ToolError("this cluster has no quorum of controllers: ZooKeeper has its metadata") from None

    def find_again(self) -> None:
        """Brokers forward to the one that is."""

    def broker_features(self) -> dict[int, Features | None]:
        found: dict[int, Features | None] = {}
        for broker in self._admin.registered_brokers():
            broker_id = broker["broker_id"]
            found[broker_id] = None
            if not broker.get("is_fenced"):
                with contextlib.suppress(*UNANSWERED, kafka.errors.UnknownBrokerIdError):
                    found[broker_id] = features_of(
                        self._admin.ask(WireRequest(_who_asks(), *_WITH_FEATURES), broker_id)
                    )
        return found

    def finalized(self) -> Mapping[str, int]:
        return features_of(self._admin.ask(WireRequest(_who_asks(), *_WITH_FEATURES))).finalized

    def close(self) -> None:
        self._admin.close()


class ByController(QuorumClient):
    """By the address of any controller, which tells where the active one is."""

    def __init__(self, connection: ClusterConnection, addresses: str) -> None:
        super().__init__(connection)
        self._addresses = _parse(addresses)
        self._active, self._cluster_id = self._find()

    def _find(self) -> tuple[ControllerConnection, str]:
        failure: ToolError | None = None
        for host, port in self._addresses:
            try:
                with ControllerConnection(host, port, self.options) as first:
                    cluster = first.describe_cluster()
            except ToolError as error:
                failure = error
                continue
            for each in cluster.brokers:
                if each.broker_id == cluster.controller_id:
                    return ControllerConnection(each.host, each.port, self.options), cluster.cluster_id
            failure = ToolError(
                "no controller is active just now: one is being elected, or a majority of the voters is down"
            )
        assert failure is not None, "there is an address"
        raise failure

    def find_again(self) -> None:
        # None may be active, or none may answer at its address: then the last one is asked again.
        with contextlib.suppress(ToolError):
            active, _ = self._find()
            self._active.__exit__()
            self._active = active

    @property
    def cluster_id(self) -> str:
        return self._cluster_id

    def ask(self, request: Message, lowest: int, highest: int) -> Any:
        """As declared. Where that controller has gone, or is active no more, the next one is looked for, once."""
        try:
            response = self._active.ask(request, lowest, highest)
            if getattr(response, "error_code", 0) not in (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER):
                return response
        except ToolError:
            pass
        self._active, self._cluster_id = self._find()
        return self._active.ask(request, lowest, highest)

    def broker_features(self) -> dict[int, Features | None]:
        return {}

    def finalized(self) -> Mapping[str, int]:
        return self._active.features().finalized

    def close(self) -> None:
        self._active.__exit__()


def quorum_client(connection: ClusterConnection, controller: str | None) -> QuorumClient:
    """By brokers, or where ``controller`` has addresses by these. Raises ToolError."""
    return ByBrokers(connection) if controller is None else ByController(connection, controller)


def features_of(response: ApiVersionsResponse) -> Features:
    """What a node says of features. Raises ToolError."""
    if response.error_code:
        raise ToolError(refusal(response.error_code, None))
    return Features(
        {each.name: VersionRange(each.min_version, each.max_version) for each in response.supported_features},
        {each.name: each.max_version_level for each in response.finalized_features},
    )


def _who_asks() -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name="ottla", client_software_version=version())


def _parse(addresses: str) -> list[tuple[str, int]]:
    try:
        found = [split_host_port(each.strip()) for each in addresses.split(",") if each.strip()]
    except ValueError as error:
        raise UsageError(f"--controller: {error}") from None
    if not found:
        raise UsageError("--controller takes HOST:PORT")
    return found
