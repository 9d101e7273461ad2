"""Wordings that messages share."""

from __future__ import annotations

import sys

import pytest

from ottla.base.wording import how_to_install, meant, nearest, plural


def test_a_noun_behind_a_number() -> None:
    assert [f"{number} {plural(number, 'member')}" for number in (0, 1, 2)] == ["0 members", "1 member", "2 members"]
    assert [plural(number, "batch", "batches") for number in (1, 2)] == ["batch", "batches"]


def test_what_may_be_meant() -> None:
    assert meant("retention.mss", ["segment.bytes", "retention.ms"]) == "; did you mean retention.ms?"
    assert meant("x", ["retention.ms"]) == ""


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("topic-0042x", "topic-0042"),
        ("tpoic-0042", "topic-0042"),
        ("Topic-0042", "topic-0042"),
        ("opic-9999", "topic-9999"),
        ("ordres", "Orders"),
        ("ab", "abc"),
        ("payments", None),
        ("", None),
    ],
)
def test_the_nearest_of_ten_thousand(typed: str, found: str | None) -> None:
    assert nearest(typed, ["abc", "Orders", *(f"topic-{number:04}" for number in range(10_000))]) == found


@pytest.mark.parametrize(
    ("origin", "what"),
    [
        ({"url": "file:///my%20work/ottla", "dir_info": {"editable": True}}, "-e '/my work/ottla[console]'"),
        ({"url": "file:///opt/ottla", "dir_info": {}}, "'/opt/ottla[console]'"),
        (
            {"url": "file:///ottla-0.1.0-py3-none-any.whl", "archive_info": {}},
            "'/ottla-0.1.0-py3-none-any.whl[console]'",
        ),
        ({"url": "https://host/ottla.whl", "archive_info": {}}, "'ottla[console] @ https://host/ottla.whl'"),
        (
            {"url": "https://host/ottla", "vcs_info": {"vcs": "git", "commit_id": "f00d"}},
            "'ottla[console] @ git+https://host/ottla@f00d'",
        ),
    ],
    ids=["editable", "folder", "wheel", "wheel elsewhere", "git"],
)
def test_how_to_install_by_what_is_installed(origin: dict[str, object], what: str) -> None:
    assert how_to_install("console", origin) == f"{sys.executable} -m pip install {what}"


def test_how_to_install_where_nothing_is() -> None:
    assert how_to_install("console", {}).startswith(
        "pip install -e '.[console]' in a checkout of Ottla, or 'WHEEL[console]'"
    )
