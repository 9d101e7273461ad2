"""The controller of a remote cluster, and its quorum, found by requests.

With a ZooKeeper Metadata says who is the controller. In KRaft mode it names any broker, which passes requests on (KIP-590), and
the controller is the leader of the quorum, which brokers of that mode tell (KIP-595).
"""

from __future__ import annotations

from ...base.build_info import version
from ...base.errors import ErrorCode, KafkaError, known_code
from ...wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ..quorum_rows import FeatureRow, QuorumRow, describe_quorum_request, quorum_row
from .cluster_client import ClusterClient

_UNKNOWN = -1
_WITH_FEATURES = 3
"""The version of ApiVersions from which on a broker tells of features (KIP-584)."""


async def described_quorum(client: ClusterClient) -> QuorumRow | None:
    """What the leader tells; None where the cluster has no quorum. Raises OSError, KafkaError."""
    try:
        return quorum_row(await client.ask_any(describe_quorum_request()))
    except KafkaError as error:
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
        return None


def controller_of(quorum: QuorumRow | None, named_by_metadata: int) -> int:
    """Its id; -1 where the console's user may not know it, or there is none."""
    if quorum is None:
        return named_by_metadata
    return _UNKNOWN if quorum.leader is None else quorum.leader


async def features(client: ClusterClient) -> tuple[FeatureRow, ...]:
    """Those that any one broker supports or has finalized. Raises OSError, KafkaError."""
    request = ApiVersionsRequest(client_software_name="ottla", client_software_version=version())
    response: ApiVersionsResponse = await client.ask_any(request, lowest=_WITH_FEATURES)
    if response.error_code:
        raise KafkaError(known_code(response.error_code))
    supported = {each.name: (each.min_version, each.max_version) for each in response.supported_features}
    finalized = {each.name: each.max_version_level for each in response.finalized_features}
    return tuple(
        FeatureRow(name, finalized.get(name, 0), *supported.get(name, (None, None)))
        for name in sorted({*supported, *finalized})
    )
