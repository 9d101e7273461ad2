"""The cluster that ``ottla doctor`` examines: the requests, their first responses, and the brokers that did not respond."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Collection, Iterable

import trio

from ....base.errors import ErrorCode, KafkaError
from ....base.seams import Clock, Workers
from ....base.wording import plural
from ....view.pace import Pace
from ....view.remote.cluster_client import ClusterClient
from ....view.remote.topic_requests import ClusterState
from ..responding import RespondingCluster
from .diagnosis import Area, Diagnosis, named, unknown

_RIGHTS = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "it takes Describe of the cluster",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "it takes Describe of the topics",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "it takes Describe of the groups",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "it takes Describe of the transactional ids",
    ErrorCode.UNSUPPORTED_VERSION: "the brokers are too old to report it",
}

Check = Callable[[], Awaitable[Iterable[Diagnosis]]]


@dataclasses.dataclass
class ExaminedCluster:
    """A cluster that has answered once."""

    found: RespondingCluster
    clock: Clock
    failures: dict[int, Exception] = dataclasses.field(default_factory=dict)
    """The brokers that did not answer since the check began, other than those that are silent anyway."""

    @property
    def client(self) -> ClusterClient:
        return self.found.client

    @property
    def state(self) -> ClusterState:
        return self.found.state

    @property
    def workers(self) -> Workers:
        return self.found.workers

    @property
    def silent(self) -> Collection[int]:
        """The brokers that are asked nothing, since they do not respond."""
        return self.found.silent

    def failed(self, broker_id: int, error: Exception) -> None:
        """A broker did not answer."""
        if broker_id not in self.silent:
            self.failures.setdefault(broker_id, error)

    def pace(self) -> Pace:
        return Pace(self.clock.elapsed)

    async def check(
        self, area: Area, what: str, check: Check, limit_s: float, *, asks_each: bool = False
    ) -> list[Diagnosis]:
        """The lines of a check; further ones for brokers that did not answer it, or were not asked where it ``asks_each``.

        ``what`` it looks at is a noun.
        """
        self.failures.clear()
        found: list[Diagnosis] = []
        try:
            with trio.fail_after(limit_s):
                found += await check()
        except (OSError, KafkaError) as error:
            return [unknown(area, f"{what}: {why(error)}")]
        except trio.TooSlowError:
            return [unknown(area, f"{what}: the brokers have not reported it within {limit_s:.0f} s")]
        silent = [unknown(area, f"{what}, of broker {each}: {why(error)}") for each, error in self.failures.items()]
        if asks_each and self.silent:
            whose = f"{plural(len(self.silent), 'broker')} {named(self.silent)}"
            silent.append(
                unknown(area, f"{what}, of {whose}: {plural(len(self.silent), 'it does', 'they do')} not respond")
            )
        return [*found, *silent]


def why(error: Exception) -> str:
    """Why something could not be checked: the missing right, or what the broker said."""
    if not isinstance(error, KafkaError):
        return str(error)
    right = _RIGHTS.get(error.code)
    return f"{right or error.message or 'the broker refused'} ({error.code.name})"
