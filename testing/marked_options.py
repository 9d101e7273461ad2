"""Options of a test's broker or cluster that its marks give: ``@pytest.mark.ottla(version="3.9")``.

A mark has the keyword arguments of ``ottla.Broker``, or of ``ottla.Cluster`` where the test has a cluster. Marks of a test, its
class and its module are put together; the one closest to the test counts. ``properties`` are put together name by name.

The options of marks are a parameter of ``ottla_broker``. So pytest remakes the fixtures that depend on it, and groups the tests
with the same options.

Wrong options fail the test that has them, in its setup or call, with its place and without a traceback. A collection never fails
by them: it would keep other tests from running.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import pytest

if TYPE_CHECKING:
    from .broker import Broker
    from .cluster import Cluster

Made = TypeVar("Made", "Broker", "Cluster")

MARK = "ottla"
_PROPERTIES = "properties"
_TAKEN_BY = ("ottla_broker", "ottla_cluster", "ottla_broker_factory", "request")
"""The fixtures by which a mark comes to something; a test may ask for the others by ``request``."""
# Since pytest 8.4 a parameter need not change the name of a test.
_NAME = getattr(pytest, "HIDDEN_PARAM", MARK)


class OptionsRefusedError(Exception):
    """A broker or cluster could not be started with its options. The text is one sentence, which ``fail`` shows."""


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Give a marked test's options to its ``ottla_broker``, right or wrong."""
    options = of_marks(metafunc.definition)
    if options and "ottla_broker" in metafunc.fixturenames:
        metafunc.parametrize("ottla_broker", [options], indirect=True, ids=[_NAME])


def check_marks(item: pytest.Item) -> None:
    """Fail a test with a mark that is without effect."""
    marks = list(item.iter_markers(MARK))
    fixtures = getattr(item, "fixturenames", ())
    if any(mark.args or not mark.kwargs for mark in marks):
        fail(item, f"the mark {MARK} takes keyword arguments, those of ottla.Broker")
    if not any(name in fixtures for name in _TAKEN_BY):
        if any(mark.name == MARK for mark in item.own_markers):
            fail(item, f"{item.name} has the mark {MARK}, but neither ottla_broker nor ottla_cluster")
    elif marks and "ottla_broker" in fixtures:
        parameters = getattr(item, "callspec", None)
        if parameters is None:
            why = "pytest gives no parameters to a unittest.TestCase: start an ottla.Broker in setUpClass"
            fail(item, f"the mark {MARK} has no effect here: {why}")
        if parameters.params.get("ottla_broker") != of_marks(item):
            fail(
                item,
                f"the mark {MARK} has no effect in a pytest.param, or on a test that is collected: mark the function",
            )


def start(kind: type[Made], given: Mapping[str, Any], marked: Mapping[str, Any]) -> Made:
    """Start a broker or cluster, with the options of its fixture and those of marks over them. Raises OptionsRefusedError."""
    from ..base.settings import SettingError
    from ..broker.server import StartError
    from .checked_options import check_type  # only for tests that have a broker

    fixture = f"ottla_{kind.__name__.lower()}"
    try:
        check_type(f"{fixture}_options", given, Mapping, f"a dict of options of ottla.{kind.__name__}")
        made = kind(**_merged([given, marked]))
    except (TypeError, ValueError) as error:
        raise OptionsRefusedError(f"{fixture}: {error}") from None
    try:
        made.start()
    except (SettingError, StartError) as error:
        raise OptionsRefusedError(f"{fixture}: {error}") from None
    return made


def fail(item: pytest.Item, why: str) -> NoReturn:
    """Fail a test without a traceback, with its file and line."""
    file, line, _ = item.location
    raise pytest.fail.Exception(f"{file}:{(line or 0) + 1}: {why}", pytrace=False) from None


def of_marks(node: pytest.Item) -> dict[str, Any]:
    """The options that the marks of a test give, together."""
    return _merged(mark.kwargs for mark in reversed(list(node.iter_markers(MARK))))


def _merged(options: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for each in options:
        properties = _together(merged.get(_PROPERTIES), each.get(_PROPERTIES))
        merged |= each
        if properties is not None:
            merged[_PROPERTIES] = properties
    return merged


def _together(below: Any, above: Any) -> Any:
    """Both properties; or the one that is no dict, for the constructor to refuse."""
    if below is None or above is None:
        return below if above is None else above
    wrong = [each for each in (above, below) if not isinstance(each, Mapping)]
    return wrong[0] if wrong else {**below, **above}
