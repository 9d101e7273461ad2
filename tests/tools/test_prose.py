"""The rules of plain English, each by an example, and that no file breaks them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.tools.prose.__main__ import findings, main
from ottla.tools.prose.rules import breaches
from ottla.tools.prose.texts import ROOT, in_markdown, in_python, in_template, sources


def rules(sentence: str) -> set[str]:
    return {breach.rule for breach in breaches(sentence)}


def test_no_file_breaks_a_rule() -> None:
    assert [str(finding) for finding in findings(sources())] == []


def test_pages_messages_and_templates_are_read() -> None:
    read = {str(path.relative_to(ROOT)) for path in sources()}
    assert {"README.md", "docs/testing.md", "broker/settings.py", "cli/app.py", "console/templates/base.html"} <= read


@pytest.mark.parametrize(
    ("sentence", "rule"),
    [
        (" ".join(["word"] * 31) + ".", "long"),
        ("The page shows what is stored.", "what"),
        ("What is expected raises an error.", "what"),
        ("It asks a leader for an epoch which that does not know.", "that-which"),
        ("It keeps those of which the leader has a copy.", "that-which"),
        ("The offset is that of the end of the log.", "that-of"),
        ("The end of the log of a replica of the topic moves.", "of-chain"),
        ("Kafka's files can be read too.", "dangling"),
        ("It is written for macOS too, but not tested.", "dangling"),
        ("One; two; three.", "semicolons"),
        ("No client has this, for it is not served.", "for"),
        ("The data folder is full.", "word"),
        ("The client is told its address.", "word"),
        ("The client gets no answer.", "word"),
        ("Each broker has a port of its own.", "word"),
        ("Where there is none, the default counts.", "word"),
        ("The other consumers go on.", "word"),
        ("This is no request of Kafka's.", "word"),
        ("A member takes up the new assignment.", "word"),
        ("The broker has found out its rack.", "word"),
        (" ".join(["word: ¤¤ and"] * 31) + ".", "long"),
    ],
)
def test_a_sentence_breaks_a_rule(sentence: str, rule: str) -> None:
    assert rule in rules(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        " ".join(["word"] * 30) + ".",
        "What does a broker write to disk?",
        "The message says what to do.",
        "Also, the offset of the end is stored.",
        "It is too large, and it still grows.",
        "There is no ZooKeeper.",
        "It is no longer in the ISR.",
        "The clients kafka-go on Linux and franz-go are tested.",
        "A copy takes up to ten records.",
        "Found out of order timestamp.",
        " ".join(["offset: ¤¤"] * 31),
    ],
)
def test_a_sentence_breaks_none(sentence: str) -> None:
    assert rules(sentence) == set()


def test_a_heading_may_begin_with_what() -> None:
    assert list(breaches("What survives", is_heading=True)) == []


_PAGE = """\
# What survives

Text that [a link
to a page](page.md#what-tells) interrupts. It has `what
is code`, **bold text**, and more.

- An item with a folder:
  its second line.

| head | `code` |
|---|---|
| a cell | Two sentences. In one cell. |

<!-- a comment
that tells -->
```sh
what is not prose
```

    what is indented code
"""


def test_a_page_is_read_in_sentences_with_their_lines() -> None:
    found = [
        (sentence.line, " ".join(sentence.text.replace("¤", "").split()), sentence.is_heading)
        for sentence in in_markdown(_PAGE)
    ]
    assert found == [
        (1, "What survives", True),
        (3, "Text that a link to a page interrupts.", False),
        (4, "It has , bold text, and more.", False),
        (7, "An item with a folder: its second line.", False),
        (10, "head", False),
        (12, "a cell", False),
        (12, "Two sentences.", False),
        (12, "In one cell.", False),
    ]


_MODULE = '''\
"""This docstring is shown to nobody."""

# "a comment is not read"
log.info("a message that tells of %s"
         f" goes on {here} for longer")
doc = "short text"
query = "SELECT some words in FROM a query"
'''


def test_a_module_is_read_in_its_literals() -> None:
    found = [(sentence.line, sentence.text) for sentence in in_python(_MODULE)]
    assert found == [(4, "a message that tells of %s goes on ¤¤¤¤¤¤ for longer")]
    assert [sentence.line for sentence in in_python(_MODULE, "testing/broker.py")] == [1, 4]


def test_a_template_is_read_between_its_tags() -> None:
    found = in_template("{% if full %}\n<p>The <b>data folder</b> has {{ free }} left.</p>\n<td>A cell of it</td>")
    assert [(sentence.line, sentence.text) for sentence in found] == [
        (2, "The data folder has ¤¤¤¤¤¤¤¤¤¤ left."),
        (3, "A cell of it"),
    ]


def test_a_finding_names_its_place_its_rule_and_the_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n\nThe folder is full.\n")
    assert main([str(page)]) == 1
    assert capsys.readouterr().out == "page.md:3: word: 'folder' (directory): The folder is full.\n1 findings\n"
