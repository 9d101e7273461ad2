"""Patterns of transactional ids: what they match, which are refused, and that none takes long."""

from __future__ import annotations

import re

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.base.errors import ErrorCode, KafkaError
from ottla.transaction_coordinator.describe import Filter
from ottla.transaction_coordinator.id_pattern import MOST_POSITIONS, IdPattern
from ottla.transaction_coordinator.transaction import Transaction, TransactionStatus
from ottla.wire.messages.list_transactions import ListTransactionsRequest

TEXTS = ("", "a", "b", "ab", "aab", "abab", "a-b", "a.b", "a1", "A", "\n", "é", "]", "-", "aaaaa", "aaaaab")
READ_ALIKE = (
    "",
    "a",
    "a*b",
    "a+?b",
    "(a|b)*",
    "(?:ab){2}",
    "a{2,}b?",
    "a{0}b",
    "(a?){12}",
    "(|a)+",
    "((a*)*)*b",
    "^a|b$",
    ".+",
    r"a\.b",
    r"a\x2db|\x{41}",
    r"[a-b\-]+",
    "[]a-]+",
    "[^a]",
    r"\w\d",
    r"\W",
    r"\D+",
    r"\S\s?",
    "a{,2}|A",
    "é",
)


@pytest.mark.parametrize("pattern", READ_ALIKE)
def test_a_pattern_matches_whole_ids_as_python_has_it(pattern: str) -> None:
    reread = pattern.replace("x{41}", "x41").replace("a{,2}", "a[{],2}")
    expected = [text for text in TEXTS if re.compile(reread, re.ASCII).fullmatch(text)]
    assert [text for text in TEXTS if IdPattern(pattern).matches(text)] == expected


ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", "é"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,}", "*?"])).map(
            lambda p: f"({p[0]}){p[1]}"
        ),
    ),
    max_leaves=5,
)


@settings(max_examples=60)
@given(PATTERNS, st.lists(st.text("abé-\n", max_size=6), max_size=6))
def test_patterns_made_of_all_parts_match_as_python_has_it(pattern: str, texts: list[str]) -> None:
    linear, other = IdPattern(pattern), re.compile(pattern, re.ASCII)
    assert [linear.matches(text) for text in texts] == [other.fullmatch(text) is not None for text in texts]


@pytest.mark.parametrize(
    "pattern",
    [
        *("(", ")", "a)", "[", "[]", "[b-a]", "[[:alpha:]]", "\\", r"\x", r"\b", r"\1", r"\pL", r"\x{110000}"),
        *("*", "a**", "a{1}{2}", "{2}", "(?=a)", "(?P<n>a)(?P=n)", "(?i)a", "a^b", "(a$)", "a{3,2}"),
        "a" * (MOST_POSITIONS + 1),
        "a{257}",
        "(a{16}){17}",
        "(){257}",
        "((){20}){20}",
        "(" + "|" * 20 + "){200}",
        "(" * 60 + "a" + ")" * 60,
        "a" * 100_000,
    ],
)
def test_a_pattern_that_cannot_be_read_is_refused_with_kafkas_error(pattern: str) -> None:
    with pytest.raises(KafkaError) as refusal:
        IdPattern(pattern)
    assert refusal.value.code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert len(refusal.value.message) < 200


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+b", "(a|a)*b", "(.*)*b", "a*a*a*a*a*a*b", "(a?){100}a{100}b", "((a{0,15}){16})*b", "(a|b)*a(a|b){100}b"],
)
def test_no_pattern_goes_back(pattern: str) -> None:
    """With ``re`` these take years, or seconds for each id."""
    made = IdPattern(pattern)
    assert not made.matches("a" * 300)
    assert made.matches("a" * 150 + "b")


async def test_others_have_their_turn_while_many_ids_are_matched() -> None:
    """However dear the pattern; by a clock that goes on by a millisecond with each look at it."""
    now = 0.0

    def elapsed() -> float:
        nonlocal now
        now += 0.001
        return now

    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    known = [Transaction(name, 1, 0, 60_000, TransactionStatus.EMPTY, 0) for name in ("a" * 1000, "b" * 1000, "hidden")]
    wanted = Filter(ListTransactionsRequest(transactional_id_pattern="(a|b)*a(a|b){20}"), 0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        listed = await wanted.select(known, lambda name: name != "hidden", elapsed)
        nursery.cancel_scope.cancel()
    assert [each.transactional_id for each in listed] == ["a" * 1000]
    assert turns > 5
