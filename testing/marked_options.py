"""Options of a test's broker or cluster that its marks give: ``@pytest.mark.ottla(version="3.9")``.

A mark has the keyword arguments of ``ottla.Broker``, or of ``ottla.Cluster`` where the test has a cluster. Marks of a test, its
class and its module are put together; the one closest to the test counts. ``properties`` are put together name by name.

The options of marks are a parameter of ``ottla_broker``. So pytest remakes the fixtures that depend on it, and groups the tests
with the same options.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, TypeVar

import pytest

from ..base.wording import meant

Made = TypeVar("Made")

MARK = "ottla"
_PROPERTIES = "properties"
_TAKEN_BY = ("ottla_broker", "ottla_cluster", "ottla_broker_factory", "request")
"""The fixtures by which a mark comes to something; a test may ask for the others by ``request``."""
# Since pytest 8.4 a parameter need not change the name of a test.
_NAME = getattr(pytest, "HIDDEN_PARAM", MARK)


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Give a marked test's options to its ``ottla_broker``. Fails the collection where the mark is without any effect."""
    node = metafunc.definition
    options = of_marks(node)
    if not any(name in metafunc.fixturenames for name in _TAKEN_BY):
        if any(mark.name == MARK for mark in node.own_markers):
            _fail(node, f"{node.name} has the mark {MARK}, but neither ottla_broker nor ottla_cluster")
    elif options and "ottla_broker" in metafunc.fixturenames:
        metafunc.parametrize("ottla_broker", [options], indirect=True, ids=[_NAME])


def check_marks(item: pytest.Item) -> None:
    """Fail a test with a misspelt option, or one to which pytest gave no parameter, as to a ``unittest.TestCase``."""
    options = of_marks(item)
    if not options:
        return
    fixtures = getattr(item, "fixturenames", ())
    if not hasattr(item, "callspec") and "ottla_broker" in fixtures:
        _fail(
            item,
            f"pytest gives no parameters to a unittest.TestCase, so the mark {MARK} has no effect here:"
            " start an ottla.Broker in setUpClass",
        )
    import ottla  # only for tests that have marks

    kinds: dict[str, type] = {
        "ottla_broker": ottla.Broker,
        "ottla_broker_factory": ottla.Broker,
        "ottla_cluster": ottla.Cluster,
    }
    for made in {kinds[name] for name in fixtures if name in kinds}:
        names = [*inspect.signature(made).parameters]
        for name in sorted(options.keys() - {*names}):
            _fail(item, f"ottla.{made.__name__} has no option {name}{meant(name, names)}")


def make(kind: type[Made], options: Mapping[str, Any]) -> Made:
    """A broker or cluster that is not started yet. Fails the test where it refuses its options."""
    try:
        return kind(**options)
    except (TypeError, ValueError) as error:
        refusal = f"ottla.{kind.__name__}: {error}"
    pytest.fail(refusal, pytrace=False)  # outside: pytest shows a chain of errors with both


def _fail(item: pytest.Item, why: str) -> NoReturn:
    file, line, _ = item.location
    pytest.fail(f"{file}:{(line or 0) + 1}: {why}", pytrace=False)


def of_marks(node: pytest.Item) -> dict[str, Any]:
    """The options that the marks of a test give, together."""
    return _merged(_keywords(mark, node) for mark in reversed(list(node.iter_markers(MARK))))


def _keywords(mark: pytest.Mark, node: pytest.Item) -> Mapping[str, Any]:
    if mark.args or not mark.kwargs:
        _fail(node, f"the mark {MARK} takes keyword arguments, those of ottla.Broker")
    return mark.kwargs


def _merged(options: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for each in options:
        properties = {**(merged.get(_PROPERTIES) or {}), **(each.get(_PROPERTIES) or {})}
        merged |= each
        if properties:
            merged[_PROPERTIES] = properties
    return merged


def with_marks(options: Mapping[str, Any], marked: Mapping[str, Any]) -> dict[str, Any]:
    """``options`` with those of marks over them."""
    return _merged([options, marked])
