"""Combinations of listener and authentication mechanism, and the clients that are tested with each.

``--whole-matrix`` is all clients at all of them; without it each client comes in once over SASL_SSL, each mechanism is that
of one client at least, and kafka-python tries each listener and each mechanism.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from ottla.compat_tests.clients.security import OAUTHBEARER
from ottla.compat_tests.security.broker import MECHANISMS, MUTUAL_TLS


class Way(NamedTuple):
    """A listener, and a mechanism or MUTUAL_TLS there; None where a client does not say who it is."""

    protocol: str
    how: str | None = None

    def __str__(self) -> str:
        return self.protocol if self.how is None else f"{self.protocol} {self.how}"


WAYS = (
    Way("PLAINTEXT"),
    Way("SSL"),
    Way("SSL", MUTUAL_TLS),
    *(Way("SASL_PLAINTEXT", mechanism) for mechanism in MECHANISMS),
    *(Way("SASL_SSL", mechanism) for mechanism in MECHANISMS),
)
DRIVERS = {
    "kafka-python": (
        Way("PLAINTEXT"),
        Way("SSL"),
        Way("SSL", MUTUAL_TLS),
        Way("SASL_PLAINTEXT", "PLAIN"),
        Way("SASL_PLAINTEXT", "SCRAM-SHA-256"),
        Way("SASL_SSL", "SCRAM-SHA-512"),
        Way("SASL_SSL", OAUTHBEARER),
    ),
    "confluent-kafka": (Way("SASL_SSL", "SCRAM-SHA-256"),),
    "aiokafka": (Way("SASL_SSL", "PLAIN"),),
    "java": (Way("SASL_SSL", OAUTHBEARER),),
    "franz-go": (Way("SASL_SSL", OAUTHBEARER),),
    "sarama": (Way("SASL_SSL", "SCRAM-SHA-512"),),
    "kafka-python-2": (),
    "java-3.9": (),
    "kafka-go": (),
    "kafkajs": (),
    "platformatic": (),
}
"""Clients with drivers, and the ways that each is tried with in every run."""
FAILS_ON_KAFKA = {
    (
        "kafka-python-2",
        "SSL",
    ): "2.3.3's admin client loses its connection to the controller where TLS comes without SASL"
}
"""Clients at listeners where Apache Kafka does not get further with them either."""
SPARK = (Way("SASL_SSL", "SCRAM-SHA-512"),)
KCAT = (Way("SASL_SSL", "PLAIN"),)


def cases(config: pytest.Config, *, authenticated: bool) -> Iterator[Any]:
    """(client, way) for a test; with ``authenticated`` only where a client says who it is."""
    for name, tried in DRIVERS.items():
        for way in WAYS if config.getoption("--whole-matrix") else tried:
            if way.how is not None or not authenticated:
                marks = [pytest.mark.client(name)]
                if (name, way.protocol) in FAILS_ON_KAFKA:
                    marks.append(pytest.mark.not_offered(FAILS_ON_KAFKA[name, way.protocol]))
                yield pytest.param(name, way, marks=marks, id=f"{name}-{way}".replace(" ", "-"))


def ways(config: pytest.Config, tried: Sequence[Way], without: Sequence[str] = ()) -> list[Way]:
    """For a client that has tests of its own: ``tried``, or all but those with a mechanism that it is ``without``."""
    return [way for way in WAYS if way.how not in without] if config.getoption("--whole-matrix") else list(tried)
