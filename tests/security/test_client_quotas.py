"""Which quota holds for a client, who shares it, and what becomes of clients with ever other names."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.security.client_quotas import ClientQuotas
from ottla.security.entities import DEFAULT
from ottla.security.quota_precedence import QuotaEntity, find, limit_of
from ottla.security.quota_settings import ClientQuotaSettings

USER, CLIENT = "alice", "app"
IN_ORDER = [
    QuotaEntity(USER, CLIENT),
    QuotaEntity(USER, DEFAULT),
    QuotaEntity(USER),
    QuotaEntity(DEFAULT, CLIENT),
    QuotaEntity(DEFAULT, DEFAULT),
    QuotaEntity(DEFAULT),
    QuotaEntity("", CLIENT),
    QuotaEntity("", DEFAULT),
]


def quotas(**properties: str) -> ClientQuotas:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return ClientQuotas(ClientQuotaSettings.from_properties(named))


def test_of_all_that_match_the_most_specific_holds() -> None:
    limits = {entity: float(number) for number, entity in enumerate(IN_ORDER)}
    for number, entity in enumerate(IN_ORDER):
        found = find(limits, USER, CLIENT)
        assert found is not None
        sharing, limit = found
        assert limit == number
        assert sharing == QuotaEntity(USER if entity.user else "", CLIENT if entity.client_id else "")
        del limits[entity]
    assert find(limits, USER, CLIENT) is None


@given(
    st.dictionaries(
        st.builds(QuotaEntity, st.sampled_from(["", "a", "b", DEFAULT]), st.sampled_from(["", "c", "d", DEFAULT])),
        st.integers(1, 100).map(float),
    ).map(lambda limits: {entity: limit for entity, limit in limits.items() if entity != ("", "")})
)
def test_what_is_shared_has_the_limit_by_which_it_was_found(limits: dict[QuotaEntity, float]) -> None:
    for user, client_id in itertools.product(["a", "b", "x"], ["", "c", "d", "x"]):
        found = find(limits, user, client_id)
        if found is not None:
            assert limit_of(limits, found[0]) == found[1]


@pytest.mark.parametrize(("entity", "is_held_to"), [(entity, entity.client_id == "") for entity in IN_ORDER])
def test_a_client_without_an_id_is_held_to_its_users_quota_only(entity: QuotaEntity, is_held_to: bool) -> None:
    assert (find({entity: 1.0}, USER, "") is not None) == is_held_to


def test_a_default_is_as_much_for_each() -> None:
    held = quotas()
    held.update(QuotaEntity(DEFAULT), {"producer_byte_rate": 1000})
    alices, bobs = (held.produce.of(user, "app", 0) for user in ("alice", "bob"))
    assert alices is not None
    assert bobs is not None
    assert alices.use(20_000, 0) == 10_000
    assert bobs.use(1_000, 0) == 0
    assert held.produce.of("alice", "another", 0) is alices
    assert held.fetch.of("alice", "app", 0) is None


def test_a_limit_that_changes_holds_at_once_for_what_was_used() -> None:
    held = quotas()
    assert not held.is_on
    held.update(QuotaEntity("alice"), {"producer_byte_rate": 1000})
    assert held.is_on
    shared = held.produce.of("alice", "app", 0)
    assert shared is not None
    assert shared.use(20_000, 0) == 10_000
    held.update(QuotaEntity("alice"), {"producer_byte_rate": 4000})
    assert held.produce.of("alice", "app", 0) is shared
    assert shared.use(0, 0) == 0
    held.update(QuotaEntity("alice"), {})
    assert held.produce.of("alice", "app", 0) is None
    assert list(held.produce.in_use()) == []
    assert not held.is_on


def test_clients_with_ever_other_names_are_forgotten() -> None:
    held = quotas()
    held.update(QuotaEntity("", DEFAULT), {"producer_byte_rate": 1000})
    for number in range(25_000):
        shared = held.produce.of("u", f"made-up-{number}", number)
        assert shared is not None
        shared.use(1, number)
    assert len(list(held.produce.in_use())) <= 10_000


def test_the_windows_are_those_of_the_settings() -> None:
    held = quotas(quota_window_num="3", quota_window_size_seconds="2")
    held.update(QuotaEntity("alice"), {"consumer_byte_rate": 100})
    shared = held.fetch.of("alice", "app", 0)
    assert shared is not None
    assert shared.most_at_once == 400
    assert shared.use(400, 0) == 0
    assert shared.use(1, 0) == 10
    assert held.longest_request_throttle_ms == 2000


def test_mutations_are_counted_in_tokens() -> None:
    held = quotas()
    held.update(QuotaEntity("alice"), {"controller_mutation_rate": 2.0})
    shared = held.mutations.of("alice", "app", 0)
    assert shared is not None
    assert shared.tokens(0) == 22
    shared.take(23, 0)
    assert shared.exhausted_ms(0) == 500
    assert not shared.is_idle(11_000)
    assert shared.is_idle(12_000)


def test_the_average_of_the_times_that_clients_were_held_up() -> None:
    held = quotas()
    held.update(QuotaEntity("alice"), {"producer_byte_rate": 1000})
    shared = held.produce.of("alice", "app", 0)
    assert shared is not None
    assert shared.average_throttle_ms(0) == 0
    shared.note_throttled(100, 0)
    shared.note_throttled(300, 0)
    assert shared.average_throttle_ms(1) == 200
    assert shared.average_throttle_ms(60_000) == 0
