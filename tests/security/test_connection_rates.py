"""How fast connections may come, and what counts for whom."""

from __future__ import annotations

from ottla.security.connection_rates import ConnectionRates
from ottla.security.quota_settings import ClientQuotaSettings


def rates(**limits: int) -> ConnectionRates:
    made = ConnectionRates(ClientQuotaSettings.from_properties({}))
    made.listener_limits.update(limits)
    return made


def test_the_broker_counts_all_listeners_but_the_protected_one() -> None:
    made = rates()
    made.limit = 1
    waits = [made.admit(listener, 0, is_protected=False) for listener in ("A", "B") * 5]
    assert waits == [0] * 10
    assert made.admit("INTERNAL", 0, is_protected=True) == 0
    assert made.admit("A", 0, is_protected=False) == 1000


def test_a_listener_has_a_limit_of_its_own() -> None:
    made = rates(A=1)
    assert [made.admit("A", 0, is_protected=False) for _ in range(11)] == [0] * 10 + [1000]
    assert made.admit("B", 0, is_protected=False) == 0
    assert made.rates(0) == {"A": 1.1, "B": 0.1}


def test_a_connection_that_is_beyond_its_addresss_rate_counts_for_nobody() -> None:
    made = rates(A=1)
    made.set_address_limit("10.0.0.1", 1)
    for _ in range(10):
        made.admit("A", 0, is_protected=False)
        assert made.admit_address("A", "10.0.0.1", 0, is_protected=False) == 0
    made.admit("A", 0, is_protected=False)
    assert made.admit_address("A", "10.0.0.1", 0, is_protected=False) == 1000
    assert made.rates(0) == {"A": 1.0}
    assert made.admit_address("A", "10.0.0.2", 0, is_protected=False) == 0
    made.set_address_limit("10.0.0.1", None)
    assert made.admit_address("A", "10.0.0.1", 0, is_protected=False) == 0


def test_a_default_is_for_each_address_that_has_no_limit_of_its_own() -> None:
    made = rates()
    made.set_address_limit(None, 1)
    made.set_address_limit("::1", 2)
    for address, allowed in (("10.0.0.1", 10), ("10.0.0.2", 10), ("::1", 20)):
        closed = []
        for _ in range(allowed + 1):
            made.admit("A", 0, is_protected=False)
            closed.append(made.admit_address("A", address, 0, is_protected=False) > 0)
        assert closed == [False] * allowed + [True], address


def test_ever_other_addresses_are_forgotten() -> None:
    made = rates()
    made.set_address_limit(None, 1)
    for number in range(30_000):
        made.admit("A", number, is_protected=False)
        made.admit_address("A", f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", number, is_protected=False)
    assert made.known_addresses <= 10_000
