"""The sentences that a user of the project reads, with the file and line where each begins.

They come from three kinds of files:

- Markdown: paragraphs, items of lists, headings and the cells of tables. Code and comments are left out. Pages that a program
  writes whole are left out, since their texts are read at their source.
- Python of the product: string literals that are prose, which are messages, log lines, help texts and descriptions of settings.
  Docstrings count where a page or ``--help`` shows them.
- The console's templates: the text between their tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .rules import CODE

ROOT = Path(__file__).resolve().parent.parent.parent

_PRODUCT = (
    "base wire security balance metadata log replication controller group_coordinator transaction_coordinator share_coordinator "
    "share_partitions handlers broker view console testing spark cli"
).split()
_GENERATED = {"docs/api.md", "docs/command-reference.md", "docs/configuration.md"}
_SHOWN_DOCSTRINGS = ("cli/app.py", "cli/commands/", "spark/commands/", "testing/", "broker/embedded.py")


class Sentence(NamedTuple):
    """A sentence as the rules see it (``text``) and as it is written (``shown``); ``line`` counts from 1."""

    path: str
    line: int
    text: str
    shown: str
    is_heading: bool = False


def sources() -> Iterator[Path]:
    """Every file that is read."""
    yield from sorted(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md"))
    yield from (page for page in sorted((ROOT / "docs").glob("*.md")) if str(page.relative_to(ROOT)) not in _GENERATED)
    for folder in _PRODUCT:
        yield from (path for path in sorted((ROOT / folder).rglob("*.py")) if "messages" not in path.parts)
    yield from sorted((ROOT / "console" / "templates").glob("*.html"))


def sentences(path: Path) -> Iterator[Sentence]:
    """The sentences of one file."""
    text = path.read_text(encoding="utf-8")
    name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name
    match path.suffix:
        case ".md":
            yield from in_markdown(text, name)
        case ".html":
            yield from in_template(text, name)
        case _:
            yield from in_python(text, name)


def _blank(found: re.Match[str], sign: str = " ") -> str:
    return re.sub(r"[^\n]", sign, found[0])


# Replacements of the same length, so that a place in the text keeps its line.
_CODE_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_AFTER_LINK = re.compile(r"\]\([^)\s]*\)")
_MARKS = re.compile(r"!?\[|\]|\*\*|(?<![\w*])\*(?=\w)|(?<=\w)\*(?!\w)|</?\w[^>\n]*>")
_END = re.compile(r"[.!?][\"'”)]*\s+(?=[A-Z\"“'(¤])")


def _split(path: str, first_line: int, block: str, *, is_heading: bool = False) -> Iterator[Sentence]:
    """The sentences of a block of text."""
    plain = _CODE_SPAN.sub(lambda found: _blank(found, CODE), block)
    plain = _MARKS.sub(_blank, _AFTER_LINK.sub(_blank, plain))
    start = 0
    for end in [*(found.end() for found in _END.finditer(plain)), len(plain)]:
        text = re.sub(r" (?=[.,;:)])", "", " ".join(plain[start:end].split()))
        if any(sign.isalpha() for sign in text):
            leading = len(plain[start:end]) - len(plain[start:end].lstrip())
            line = first_line + block.count("\n", 0, start + leading)
            yield Sentence(path, line, text, " ".join(block[start:end].split()), is_heading)
        start = end


_FENCE = re.compile(r"^ *(`{3,}|~{3,}).*?^ *\1`*$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ITEM = re.compile(r"( *)(?:[-*]|\d+\.) ")


def in_markdown(text: str, path: str = "page.md") -> Iterator[Sentence]:
    """The sentences of a page."""
    lines = _COMMENT.sub(_blank, _FENCE.sub(_blank, text)).split("\n")
    block: list[str] = []
    first, is_list = 0, False
    for number, line in enumerate([*lines, ""], 1):
        item = _ITEM.match(line)
        ends = not line.strip() or item or line.startswith(("#", "|"))
        if ends and block:
            yield from _split(path, first, "\n".join(block))
            block = []
        if not line.strip():
            continue
        if line.startswith("|"):
            is_list = False
            yield from (sentence for cell in _cells(line) for sentence in _split(path, number, cell))
        elif line.startswith("#"):
            is_list = False
            yield from _split(path, number, line.lstrip("# "), is_heading=True)
        elif block or item or is_list or not line.startswith("    "):
            is_list = bool(item) or (is_list and line.startswith(" "))
            if not block:
                first = number
            block.append(line[item.end() :] if item else line)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1] if re.search("[A-Za-z]", cell)]


_IN_STRING = re.compile(r"[a-z]{2,}\s+[a-z]+\s+[a-z]+")
_LITERAL = (
    r"""[rbfuRBFU]{0,2}(?:\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
)
_COMMENT_OR_LITERALS = re.compile(rf"#[^\n]*|(?<!\w){_LITERAL}(?:\s*{_LITERAL})*", re.DOTALL)
_EACH_LITERAL = re.compile(_LITERAL, re.DOTALL)
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_ESCAPE = re.compile(r"\\[nt]")
_NOT_PROSE = re.compile(r"[{}\\<>|=]|^\s*SELECT\b|\b(?:FROM|WHERE)\b")


def in_python(text: str, path: str = "module.py") -> Iterator[Sentence]:
    """The sentences in the literals of a module. No syntax tree is made: that would take most of the time."""
    shows_docstrings = path.startswith(_SHOWN_DOCSTRINGS) or path.endswith("settings.py")
    for found in _COMMENT_OR_LITERALS.finditer(text):
        if found[0].startswith("#") or not _IN_STRING.search(found[0]):
            continue
        is_docstring = (
            found[0].startswith('"""') and not text[text.rfind("\n", 0, found.start()) + 1 : found.start()].strip()
        )
        if is_docstring and not shows_docstrings:
            continue
        literal = _joined(found[0])
        if not _is_prose(literal):
            continue
        first = 1 + text.count("\n", 0, found.start())
        for paragraph in _paragraphs(literal):
            yield from _split(path, first + literal.count("\n", 0, paragraph.start()), paragraph[0])


def _joined(written: str) -> str:
    """The value of literals that follow each other, nearly. A new line between two of them stays one, for the sake of lines."""
    parts = []
    end = 0
    for found in _EACH_LITERAL.finditer(written):
        parts.append("\n" * written.count("\n", end, found.start()))
        end = found.end()
        prefix, quote, _ = re.split(r"(\"{3}|'{3}|\"|')", found[0], maxsplit=1)
        text = found[0][len(prefix) + len(quote) : -len(quote)]
        if "f" in prefix.lower():
            text = _PLACEHOLDER.sub(lambda value: _blank(value, CODE), text)
        parts.append(_ESCAPE.sub("  ", text) if "r" not in prefix.lower() else text)
    return "".join(parts)


def _paragraphs(literal: str) -> Iterator[re.Match[str]]:
    """Paragraphs and items of lists. Code is left out: what is deeply indented, and examples, which begin with a backspace."""
    for found in re.finditer(r"(?:(?!\n\s*\n|\n\s*- ).)+", literal, re.DOTALL):
        if not re.match(r"\s*\\b|\n? {8}", found[0]) and "\n    async with" not in found[0]:
            yield found


def _is_prose(literal: str) -> bool:
    """Whether a literal has a few plain words in a row, and is neither markup nor a query nor a pattern."""
    return bool(_IN_STRING.search(literal)) and len(_NOT_PROSE.findall(literal)) <= len(literal) // 60


_TAG = re.compile(r"{%.*?%}|{#.*?#}|<(?:script|style)\b.*?</(?:script|style)>|<svg\b.*?</svg>", re.DOTALL)
_VALUE = re.compile(r"{{.*?}}", re.DOTALL)
_INLINE = re.compile(r"</?(?:a|b|strong|em|code|span|abbr|time|kbd)\b[^>]*>")
_BREAKING = re.compile(r"<[^>]*>")


def in_template(text: str, path: str = "page.html") -> Iterator[Sentence]:
    """The sentences between the tags of a template."""
    plain = _VALUE.sub(lambda found: _blank(found, CODE), _TAG.sub(_blank, text))
    plain = _INLINE.sub(_blank, plain)
    start = 0
    for end, after in [*(found.span() for found in _BREAKING.finditer(plain)), (len(plain), len(plain))]:
        if _IN_STRING.search(plain, start, end):
            yield from _split(path, 1 + plain.count("\n", 0, start), plain[start:end])
        start = after
