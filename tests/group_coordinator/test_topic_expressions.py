"""Regular expressions of topic names: what they match, which are refused, and that none holds up the loop."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.group_coordinator.assignors.assignor import Steps, T, finished
from ottla.group_coordinator.topic_expressions import compiled, describable_topics, matching_topics

TOPICS = ("orders", "orders-eu", "Orders", "payments.v1", "__consumer_offsets", "a" * 249)
CANNOT_READ = "(a{500}){3}"


def refusal(expression: str) -> KafkaError:
    with pytest.raises(KafkaError) as refused:
        compiled(expression)
    return refused.value


def number_of_steps(steps: Steps[T]) -> int:
    return sum(1 for _ in steps)


@pytest.mark.cpython
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("orders", {"orders"}),
        ("orders.*", {"orders", "orders-eu"}),
        ("(?i)orders", {"orders", "Orders"}),
        ("orders|payments", {"orders"}),
        ("^orders$", {"orders"}),
        (r"[a-z]+\.v\d", {"payments.v1"}),
        (r"\Qpayments.v\E[[:digit:]]", {"payments.v1"}),
        (r"\pL+", {"orders", "Orders", "a" * 249}),
        (".*", {*TOPICS}),
        ("日本", set()),
        ("", set()),
    ],
)
def test_an_expression_matches_whole_names(expression: str, expected: set[str]) -> None:
    one = compiled(expression)
    assert {topic for topic in TOPICS if one.matches(topic)} == expected


@pytest.mark.cpython
@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("[", "SubscribedTopicRegex `[` is not a valid regular expression: missing ]: [."),
        ("é**", "SubscribedTopicRegex `é**` is not a valid regular expression: bad repetition operator: **."),
        (r"(a)\1", r"SubscribedTopicRegex `(a)\1` is not a valid regular expression: invalid escape sequence: \1."),
        ("(?=a)", "SubscribedTopicRegex `(?=a)` is not a valid regular expression: invalid perl operator: (?=."),
    ],
)
def test_an_invalid_expression_is_refused_with_kafkas_text(expression: str, text: str) -> None:
    error = refusal(expression)
    assert (error.code, error.message) == (ErrorCode.INVALID_REGULAR_EXPRESSION, text)


@pytest.mark.cpython
@pytest.mark.parametrize("expression", [r"\pL?" * 5000, "(?:a?){1000}" * 40], ids=["classes of Unicode", "repeats"])
def test_a_program_has_bounded_memory_and_its_refusal_a_bounded_length(expression: str) -> None:
    error = refusal(expression)
    assert error.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert "pattern too large" in error.message
    assert len(error.message) < 400


@pytest.mark.cpython
def test_hundreds_of_topics_by_name_are_an_expression() -> None:
    names = [f"{number:03d}-of-orders-and-of-payments-v11" for number in range(900)]
    expression = "|".join(names)
    assert 30_000 < len(expression) < 32_767
    one = compiled(expression)
    assert all(one.matches(name) for name in names)
    assert not one.matches("900-of-orders-and-of-payments-v11")


@pytest.mark.cpython
@pytest.mark.parametrize(
    "expression", ["(a+)+b", "(a|a)*b", "(.*)*b", "a*a*a*a*a*a*b", "(a?){100}a{100}b", "(.?){1000}b"]
)
def test_no_expression_goes_back(expression: str) -> None:
    """With ``re`` these take years, or seconds for each name."""
    one = compiled(expression)
    assert not one.matches("a" * 249)
    assert one.matches("a" * 149 + "b")


def test_without_google_re2_the_refusal_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    error = refusal("orders.*")
    assert error.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert error.message == (
        "SubscribedTopicRegex `orders.*` cannot be read: this broker has no google-re2, which reads them "
        "(pip install google-re2)."
    )
    assert finished(matching_topics(["orders.*"], TOPICS)) == {"orders.*": None}


@pytest.mark.cpython
def test_re2_is_imported_with_the_first_expression() -> None:
    program = """
import sys
import ottla.broker.server
from ottla.group_coordinator import topic_expressions
assert "re2" not in sys.modules
topic_expressions.compiled("a")
assert "re2" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


@pytest.mark.cpython
def test_each_expression_gets_its_topics_and_one_that_cannot_be_read_none() -> None:
    found = finished(matching_topics(["orders.*", "__.*", "nothing", CANNOT_READ], TOPICS))
    assert found == {
        "orders.*": {"orders", "orders-eu"},
        "__.*": {"__consumer_offsets"},
        "nothing": set(),
        CANNOT_READ: None,
    }


@pytest.mark.cpython
def test_a_step_is_shorter_the_more_an_expression_costs() -> None:
    names = [f"{number:0249d}" for number in range(1000)]
    cheap, dear = (number_of_steps(matching_topics([expression], names)) for expression in ("x.*", "(?:a?){1000}"))
    assert 2 <= cheap <= 5
    assert dear > 100
    assert number_of_steps(matching_topics(["x.*"] * 9, names)) == cheap
    assert number_of_steps(matching_topics([f"x{number}.*" for number in range(50)], names)) > 20 * cheap


def test_topics_that_may_not_be_described_are_left_out() -> None:
    topics_of = {
        "o.*": frozenset({"orders", "orders-eu"}),
        "p.*": frozenset({"payments"}),
        "[": None,
        "orders": frozenset({"orders"}),
    }
    asked = []

    def may_describe(topic: str) -> bool:
        asked.append(topic)
        return topic == "orders-eu"

    assert finished(describable_topics(topics_of, may_describe)) == {
        "o.*": {"orders-eu"},
        "p.*": set(),
        "[": None,
        "orders": set(),
    }
    assert asked == ["orders", "orders-eu", "payments"]


def test_rights_are_looked_at_in_steps() -> None:
    topics_of = {".*": frozenset(map(str, range(9000)))}
    assert number_of_steps(describable_topics(topics_of, lambda _: True)) > 40
