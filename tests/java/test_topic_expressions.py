"""Regular expressions of topics, which match what Apache Kafka's engine (RE2/J) matches."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from ottla.base.errors import KafkaError
from ottla.compat_tests import toolchains
from ottla.compat_tests.java.tools import SHORT_LIVED, java_command
from ottla.group_coordinator.topic_expressions import compiled

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).with_name("TopicExpressions.java")
CASES = 3000
TOPICS = (
    "a b ab aab abab a-b a.b a_b a1 A B x k s K S 0 42 -.- aaaa orders Orders ORDERS orders-eu orders-us.dlq payments.v1 "
    "payments_v2 __consumer_offsets"
).split()

# By what RE2's syntax has. A line holds expressions with spaces between them.
EXPRESSIONS = r"""
    a .* a*b orders.* orders-(eu|us).* ^orders-.*$ ^a|b$ \Aorders\z \Aorders\Z [^_].* payments[._]v\d (a+)+b a|b|ab (ab){1,2}
    (?i)ORDERS(-eu)? (?i:o)rders.* (?s).* (?m)^a$ (?U)a+ (?x)a (?u)a (?-i)a (?is-mU)A.* (?i (?z)a (?i-)a (?)a (?-)a (?i)S(?-i)s
    (?P<n>a)b (?<n>a)b (?'n'a)b (?P<1n>a) (?P<>a) (?P<n-m>a) (?P=n) (?P>n) (?#c)a (?=a)a (?!a)b (?<=a)b (?<!a)b (?>a) (?|a) (a)\1
    \bab\b \Ba a\B a\b \d+ \D+ \w+ \W+ \s \S+ \h \R \v \X \G \K \N \z \Z \A \i \e \a \f \n \cA \u0041 \U0041 \o{101} \q \y
    \Qa.b\E \Qa.b a\E \Q\E \Qab\E* \Qorders-us.dlq\E [\Qa\E] \\ \ a\ \_ \- \. \/ \: \" \# \@
    \x41 \x4 \x{41} \x{} \x{110000} \x{10FFFF} \x{D800} \xZZ \0 \00 \012 \0123 \08 \8 \10 \101 \777
    \pL+ \p{L}+ \p{Lu} \p{^Lu}+ \P{Lu}+ \PN+ \P{^L}+ \p{Greek} \p{Latin}+ \p{IsLatin} \p{Alpha} \p{Any}+ \p{Lx} \p{L&} \p \p{ \p{L
    [[:alpha:]]+ [[:^alpha:]]+ [[:word:]]+ [[:foo:]] [:alpha:] [[:alpha:]-z] [a-\d] [\d-z] [\w.]+ [^\w]+ [\pL.]+ [^\pL]+
    [a-z] [z-a] [] []a] [^]a]+ [^] [a [ ] [a-] [-a] [a-b-c] [--.] [a&&b] [a[b]] [\b] [\x41-\x43] [^a] [a-z&&[^b]]
    a{2} a{2,} a{2,3} a{,3} a{ a{} a{1 a{x} a{2,1} a{0} a{0,0}b a{1000} a{1001} a{2}? a{2}{3} a{2}* (a*){1000} ((a{10}){10}){10}
    a** a*+ a++ a?? a??? a*? a?+ (a*)* (|a)* (a|)* () ()* (?:) | || a| |a (|) ^* ^+ $* \b* (^)* ^^a$$ a^b a$b (^a$) (^a)b (b^a)
    * + ? *a (*) |* {2} a|* ) ( ()) (() ((a) x{0}y{0}a a,b % ! ~ && <a> /orders/
    é é* . .. 日本.* [日本] (?i)é (?i)\x{17f} [\x{17f}] (?i)[\x{17f}\x{212a}]+ (?i)[^\x{17f}]+ (?i)\x{212a}
    (?i)\p{Lu}+ (?i)\P{Lu}+ (?i)[[:upper:]]+ (?i)[^s]+ (😀|a)
""".split()

ACCEPTED_BY_RE2_ALONE = r"(?P<n>a)(?P<n>b) (?P<é>a) \C {+ \p{Kawi}".split()
ACCEPTED_BY_RE2J_ALONE = [*r"(a{500}){3} ((a{11}){10}){10} \é".split(), r"\pL?" * 1000]

ATOMS = r"""
    a b A - _ \. . [ab] [^a] \w \d \W \D é [a-z] [[:alpha:]] [^[:digit:]] \pL \p{Lu} \P{N} ^ $ \b \B \A \z (?:) orders eu
""".split()
BEGINNINGS = ["(", "(?:", "(?i:", "(?s:", "(?-i:", "(?U:", "(?m:"]
REPEATS = ["", "", "", "*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?", "+?", "??", "{0}", "**"]


def expression(chance: random.Random, depth: int) -> str:
    kind = chance.random()
    if not depth or kind < 0.35:
        return chance.choice(ATOMS) + chance.choice(REPEATS)
    if kind < 0.6:
        return expression(chance, depth - 1) + expression(chance, depth - 1)
    if kind < 0.8:
        return expression(chance, depth - 1) + "|" + expression(chance, depth - 1)
    return chance.choice(BEGINNINGS) + expression(chance, depth - 1) + ")" + chance.choice(REPEATS)


def matching(text: str) -> str | None:
    """A 1 or 0 for each topic, or None if the expression is refused."""
    try:
        one = compiled(text)
    except KafkaError:
        return None
    return "".join(str(int(one.matches(topic))) for topic in TOPICS)


def test_expressions_match_as_in_kafka(tmp_path: Path) -> None:
    chance = random.Random(848)
    made = [*EXPRESSIONS, *(expression(chance, chance.randrange(1, 5)) for _ in range(CASES))]
    asked = [*made, *ACCEPTED_BY_RE2_ALONE, *ACCEPTED_BY_RE2J_ALONE]
    toolchains.compile_java([SOURCE], toolchains.kafka_jars(), tmp_path)
    *java, jars = java_command(tmp_path, *SHORT_LIVED)
    done = subprocess.run(
        [*java, f"{tmp_path}:{jars}", "TopicExpressions"],
        input="\n".join([" ".join(TOPICS), *(each.encode().hex() for each in asked)]).encode(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    lines = [line if set(line) <= {"0", "1"} else None for line in done.stdout.decode().splitlines()]
    kafka = dict(zip(asked, lines, strict=True))
    assert {each: kafka[each] for each in made} == {each: matching(each) for each in made}
    assert sum(kafka[each] is not None for each in made) > len(made) * 0.7
    assert sum("1" in (kafka[each] or "") for each in made) > len(made) * 0.3
    assert [each for each in ACCEPTED_BY_RE2_ALONE if kafka[each] is not None or matching(each) is None] == []
    assert [each for each in ACCEPTED_BY_RE2J_ALONE if kafka[each] is None or matching(each) is not None] == []
