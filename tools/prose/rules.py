"""The rules of plain English: a sentence's length, its shapes, and words that have a better one in the field.

A rule is a name, a pattern and the advice that goes with it. Patterns see a sentence whose code is replaced by ``CODE`` signs,
whose links are reduced to their text, and whose spaces are single. They may be wrong about a sentence: then the sentence is worth
another wording anyway, since a reader has to read it twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

CODE = "¤"
"""Each character of inline code, or a value that is filled in."""
MOST_WORDS = 30
"""Words of a sentence. The aim is 25."""


class Rule(NamedTuple):
    """A pattern that no sentence has."""

    name: str
    pattern: re.Pattern[str]
    advice: str


def _rule(name: str, pattern: str, advice: str) -> Rule:
    return Rule(name, re.compile(pattern, re.IGNORECASE), advice)


_SHAPES = (
    _rule("what", r"\bwhat\b(?! to\b| happen| you\b|[^.]*\?)", "the noun itself"),
    _rule("that-which", r"\b(?:that|those) (?:of which|which)\b|\bwhich that\b", "the noun itself"),
    _rule(
        "that-of",
        r"\b(?:that|those) of\b.*?\b(?:(?:that|those) of)\b|\b(?:that|those) of (?:\S+ ){1,4}of\b",
        "repeat the noun",
    ),
    _rule(
        "of-chain", r"\bof (?:[^\s,;:.]+ ){1,3}of (?:[^\s,;:.]+ ){1,3}of\b", "a noun before a noun, or two sentences"
    ),
    _rule("dangling", r"\b(?:too|also|still|as well) ?(?:[.;:!)]|$|, (?:and|but)\b)", "at the verb, or left out"),
    _rule("semicolons", r";.*;", "sentences, or a list"),
    _rule("for", r", for (?:it|they|there|that|these|he|such|nothing|nobody|neither)\b", "because, since"),
)

# The words of this project that nobody else in the field uses, or that are words of another century.
_WORDS = {
    r"folders?": "directory",
    r"(?:an|the|each|every|no|its|their|this|these|those|all|any|lost|late|of|in) answers?|answered with": "response",
    r"tells?|told|telling|untold": "report, show, say",
    r"says? so|is said|are said": "report, name",
    r"look(?:s|ed|ing)? (?:at|into|again|after)|to look": "inspect, read, poll",
    r"where (?:there|it) (?:is|are) (?:no|none|not)\b|where none|where (?:there )?are none": "without, if … has no",
    r"of (?:its|their|his|one's|your|my|our) own": "its own …, a separate …",
    r"is there|are there|is not there|that is there": "exists",
    r"heeds?|heeded|outdo(?:es)?|outdone|mend(?:s|ed)?|lays?|laid|forsake|seldom|anew|in vain|for ever|hither|thence|hence": (
        "a word of today"
    ),
    r"whereby|wherein|therein|thereof|thereby|thereafter": "by which, in which …",
    r"nobody|somebody|whoever|whomever": "a client, a user, no one who …",
    r"go(?:es)? on|went on|going on": "continue",
    r"beside": "next to, with",
    r"need not": "does not have to",
    r"(?:is|are|was|were) to be": "must be, can be",
    r"(?:is|are|was|were|be|been|being) asked": "request, query",
    r"(?:is|are|was|were|be) (?:not )?heard|hears? (?:of|from)|heard (?:of|from)": "receives, learns",
    r"at (?:its|their) (?:start|end|beginning)": "when it starts, when it ends",
    r"in (?:the|its|their) place|in (?:its|their) stead|in the place of": "instead of",
    r"(?:hold|holds|held|holding) up": "delay, block",
    r"(?:do|does|did|done) without": "not use, not need",
    r"(?<!there )(?<!here )(?:is|are|was|were) no (?!longer|more|such|one)": "is not a",
    r"of before|from before|until then|as yet": "previous, earlier, so far",
    r"took up|takes? up(?! to)|taken up|taking up": "adopt, start",
    r"so many|so much|so long|for so|so often": "the number, the time",
    r"makes? of|made of it": "does with",
    r"let in|lets in|lets? into|letting in": "admit, accept",
    r"stands? (?:in|there|beside|before|above|below|under|on)|stood": "is",
    r"outlives?|outlived": "survive",
    r"that pays?|what pays": "is worth it",
    r"comes? to (?:that|this|it)|comes? of": "results",
    r"may look|who looks": "view",
    r"no Kafka's": "not Kafka's",
    r"as if it were|as though": "as",
    r"befall|strikes|struck|strike": "apply, hit",
    r"once more|over again": "again",
    r"of the kind": "name it",
    r"(?:is|are|was|were|be) gone": "no longer exists",
    r"comes? back|came back|coming back": "returns, reconnects",
    r"as it stands|as they stand": "unchanged",
    r"stops? the start": "the broker does not start",
    r"finds? out|found out(?! of)": "detect",
    r"(?:is|are|be|was|were) taken for": "treated as",
    r"(?:none|nothing|something) of (?:it|that|this|them)": "name it",
    r"at hand|by hand of|for good": "available, manually, permanently",
}

_FIELDS = re.compile(rf"(?:\b\w+: {CODE}+ ?){{3,}}")
"""Names with their values, as in a line of a listing, which is not read as a sentence."""
_WORD_RULES = tuple(_rule("word", rf"\b(?<!-)(?:{words})\b(?!-)", advice) for words, advice in _WORDS.items())
_ANY_WORD = re.compile("|".join(rule.pattern.pattern for rule in _WORD_RULES), re.IGNORECASE)


class Breach(NamedTuple):
    """A rule that a sentence breaks, and the words that break it."""

    rule: str
    words: str
    advice: str


def breaches(sentence: str, *, is_heading: bool = False) -> Iterator[Breach]:
    """The rules that a sentence breaks. A heading may begin with "What", as a question does."""
    count = len(
        [word for word in _FIELDS.sub("", sentence).split(" ") if any(sign.isalnum() or sign == CODE for sign in word)]
    )
    if count > MOST_WORDS:
        yield Breach("long", f"{count} words", f"at most {MOST_WORDS}")
    for rule in (*_SHAPES, *(_WORD_RULES if _ANY_WORD.search(sentence) else ())):
        if is_heading and rule.name == "what":
            continue
        if found := rule.pattern.search(sentence):
            yield Breach(rule.name, found[0] if len(found[0]) < 40 else found[0][:37] + "…", rule.advice)
