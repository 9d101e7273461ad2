"""``ottla serve`` is read alike with typer and without it."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from ottla.cli import app, plain_serve, serve


def test_options_are_those_of_the_declaration() -> None:
    declared = inspect.signature(app.serve).parameters
    assert set(plain_serve.VALUES) == set(declared)
    taken = inspect.signature(serve.run).parameters
    assert {*taken, "brokers"} == set(declared), "several brokers are many_brokers'"
    for name in ("log_level", "log_format"):
        assert taken[name].default == declared[name].default


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("serve", {}),
        ("serve --listen 127.0.0.1:0 --data-dir d", {"listen": "127.0.0.1:0", "data_dir": Path("d")}),
        ("serve --data-dir=d --log-level=debug", {"data_dir": Path("d"), "log_level": "debug"}),
        ("serve --override a=1 --override=b=2", {"override": ["a=1", "b=2"]}),
        (
            "serve --console 127.0.0.1:0 --console-allow-writes",
            {"console": "127.0.0.1:0", "console_allow_writes": True},
        ),
        ("serve --config f --trace all", {"config": Path("f"), "trace": "all"}),
    ],
)
def test_what_is_spelt_out_is_read(line: str, options: dict[str, object]) -> None:
    assert plain_serve.read(line.split()) == options


@pytest.mark.parametrize(
    "line",
    [
        "",
        "--help",
        "topics list",
        "serve --help",
        "serve -h",
        "serve --unknown 1",
        "serve --data_dir d",
        "serve --listen",
        "serve --listen --config f",
        "serve --console-allow-writes=yes",
        "serve more",
        "--version serve",
    ],
)
def test_the_rest_is_left_to_typer(line: str) -> None:
    assert plain_serve.read(line.split()) is None


def test_an_override_that_an_option_stands_before_is_named(caplog: pytest.LogCaptureFixture) -> None:
    overrides = ["listeners=SSL://127.0.0.1:9093", "log.dirs=data", "num.partitions=2"]
    config = serve.configure("127.0.0.1:9092", None, Path("data"), None, overrides)
    assert config.properties["listeners"] == "PLAINTEXT://127.0.0.1:9092"
    assert config.properties["num.partitions"] == "2"
    assert "--override listeners=SSL://127.0.0.1:9093 has no effect: the option for it says PLAINTEXT" in caplog.text
    assert caplog.text.count("has no effect") == 1
