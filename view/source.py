"""``ViewSource``: the interface of the data behind the pages.

Each source answers from what it has at hand, or within a few seconds.

``BrokerView`` is the source of a console that a broker serves itself. A source may be made of requests to any Kafka as well: what
only a broker can know is not among a source's methods. That is the view's own, and ``inside`` is that view or None; so a page
that needs it says so by what it takes (``seen_inside``).

Methods raise NotFoundError for what is not there, KafkaError and OSError where nothing answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..base.seams import Workers
from .admin_rows import AclRow, ClusterDetail, QuotaRow, TransactionRow, UserRow
from .connect_view import ConnectView
from .history import History
from .layout import ReplicaLayout
from .own.broker_view import BrokerView, NotFoundError
from .pace import Pace
from .quorum_rows import QuorumDetail
from .record_log import RecordLog
from .rows import ClusterRow, GroupDetail, GroupRow, Outage, TopicDetail, TopicRow

ONLY_INSIDE = (
    "Connections, requests, segments and where consumers are reading are known to a broker alone; of an Ottla broker its own "
    "console shows them, which 'ottla serve --console' has."
)


class Administration(Protocol):
    """What any Kafka answers beside topics and groups. Raises NotFoundError, KafkaError, OSError."""

    async def transactions(self) -> Sequence[TransactionRow]: ...

    async def transaction(self, transactional_id: str) -> TransactionRow: ...

    async def acls(self) -> Sequence[AclRow] | None:
        """None where there is no authorizer."""
        ...

    async def acls_of_topic(self, topic: str) -> Sequence[AclRow] | None: ...

    async def users(self) -> Sequence[UserRow]: ...

    async def quotas(self) -> Sequence[QuotaRow]: ...

    async def cluster(self) -> ClusterDetail: ...

    async def layout(self, most: int) -> ReplicaLayout | None:
        """Where all replicas are, read anew for each who asks; None where there are more partitions than that."""
        ...


class ViewSource(Protocol):
    """The data behind the pages. ``bootstrap_servers`` is for the commands that they show."""

    @property
    def bootstrap_servers(self) -> str: ...

    @property
    def history(self) -> History:
        """The last hour, of those series that the source has."""
        ...

    @property
    def inside(self) -> BrokerView | None:
        """The view of the broker in whose process this is."""
        ...

    @property
    def administration(self) -> Administration: ...

    @property
    def consoles(self) -> Mapping[int, str]:
        """Where brokers have consoles of their own, without the broker in this process; as far as they have told."""
        ...

    @property
    def has_quorum(self) -> bool:
        """Whether the cluster is known to have a quorum of controllers."""
        ...

    @property
    def connect(self) -> ConnectView | None:
        """Kafka Connect; None where no worker of it was set."""
        ...

    @property
    def workers(self) -> Workers: ...

    def pace(self) -> Pace: ...

    def elapsed(self) -> float: ...

    def outage(self) -> Outage | None:
        """Since when nothing answers; None while all is well."""
        ...

    def sees_cluster(self) -> bool:
        """Whether ``cluster`` may be asked for by who asks."""
        ...

    async def cluster(self) -> ClusterRow: ...

    async def quorum(self) -> QuorumDetail | None:
        """The quorum of controllers, as of some seconds ago; None where the cluster has none."""
        ...

    async def topics(self) -> Sequence[TopicRow]: ...

    async def topic(self, name: str) -> TopicDetail: ...

    async def groups(self) -> Sequence[GroupRow]: ...

    async def group(self, group_id: str) -> GroupDetail: ...

    async def group_lags(self, group_id: str) -> Sequence[tuple[int, float]]:
        """The last hour of a group, by minute: when it ended (ms), and the mean lag; NOT_KNOWN where it was not read."""
        ...

    async def logs(self, topic: str) -> Sequence[RecordLog]:
        """The partitions that can be read, by number."""
        ...

    async def log(self, topic: str, number: int) -> RecordLog: ...


def seen_inside(source: ViewSource) -> BrokerView:
    """The broker's own view. Raises NotFoundError, with a sentence for people, where the source is none."""
    if source.inside is None:
        raise NotFoundError(ONLY_INSIDE)
    return source.inside
