"""``python tools/api_page.py`` prints the reference page of the Python API, docs/api.md, read from the source.

Nothing is imported: signatures and docstrings come out of the syntax tree, so the page is the same whatever is installed. What
is private by its name, or listed in ``_INTERNAL``, is left out.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_ROOT = Path(__file__).resolve().parent.parent

_HEAD = """\
# Python API

`import ottla` gives `ottla.Broker`, a Kafka broker in a thread, `ottla.Cluster`, several of them, and `ottla.open_broker` for
programs on trio; pytest finds the [fixtures](#fixtures) by itself. [Testing with Ottla](testing.md) shows them at work.

This page is made from the docstrings in the source: `make docs` rewrites it, and a test compares the two.
"""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class _Shown(NamedTuple):
    """A class or function of the page. ``is_made``: users of the API call the class to make one."""

    module: str
    name: str
    path: str
    is_made: bool = False


_SECTIONS = {
    "One broker": (
        _Shown("testing/broker.py", "Broker", "ottla.Broker", is_made=True),
        _Shown("broker/embedded.py", "open_broker", "ottla.open_broker"),
        _Shown("broker/embedded.py", "RunningBroker", "ottla.RunningBroker"),
    ),
    "A cluster": (
        _Shown("testing/cluster.py", "Cluster", "ottla.Cluster", is_made=True),
        _Shown("testing/cluster.py", "ClusterBroker", "ClusterBroker"),
    ),
    "Faults": (
        _Shown("testing/faults.py", "Faults", "Faults"),
        _Shown("testing/faults.py", "Fault", "Fault"),
        _Shown("testing/rebalance_hold.py", "RebalanceHold", "RebalanceHold"),
    ),
    "Requests and records": (
        _Shown("testing/requests.py", "Requests", "Requests"),
        _Shown("testing/requests.py", "SentRequest", "SentRequest"),
        _Shown("testing/records.py", "KafkaRecord", "KafkaRecord"),
        _Shown("testing/expected_records.py", "ExpectedRecord", "ottla.ExpectedRecord"),
    ),
    "Time": (_Shown("testing/clock.py", "BrokerClock", "BrokerClock"),),
    "Errors": (
        _Shown("base/errors.py", "KafkaError", "ottla.base.errors.KafkaError"),
        _Shown("broker/server.py", "StartError", "ottla.broker.server.StartError"),
        _Shown("broker/server.py", "BrokerFailedError", "ottla.broker.server.BrokerFailedError"),
        _Shown("base/settings.py", "SettingError", "ottla.base.settings.SettingError"),
    ),
}
_PLUGIN = "testing/plugin.py"
_INTERNAL = {"Fault": {"hit", "meets"}, "Faults": {"due"}, "Requests": {"note"}}
"""Members that the broker calls, and users of the API do not."""


def page() -> str:
    """The whole page, in Markdown."""
    lines = [_HEAD]
    for title, shown in _SECTIONS.items():
        lines += [f"## {title}", "", *(line for each in shown for line in _entry(each))]
    return "\n".join([*lines, *_fixtures()])


def _entry(shown: _Shown) -> Iterator[str]:
    node = _named(shown.module, shown.name)
    yield f"### {shown.path}"
    yield ""
    if not isinstance(node, ast.ClassDef):
        yield from _described(shown.path, node)
        return
    members = {each.name: each for each in node.body if isinstance(each, _Function)}
    if shown.is_made:
        yield from ["```python", _signature(shown.path, members["__init__"]), "```", ""]
    yield from [_prose(ast.get_docstring(node) or ""), ""]
    fields = list(_fields(node))
    if fields:
        yield from [*fields, ""]
    hidden = _INTERNAL.get(node.name, set())
    for name, member in members.items():
        if not name.startswith("_") and name not in hidden:
            yield from [f"#### {node.name}.{name}", "", *_described(name, member)]


def _described(name: str, node: _Function) -> Iterator[str]:
    if _is_decorated(node, "property"):
        assert node.returns is not None
        yield from ["```python", f"{name}: {ast.unparse(node.returns)}", "```", ""]
    else:
        yield from ["```python", _signature(name, node), "```", ""]
    yield from [_prose(ast.get_docstring(node) or ""), ""]


def _fields(node: ast.ClassDef) -> Iterator[str]:
    """The public attributes with a type or a docstring, in the class or its ``__init__``: a line each."""
    for each, below in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and not each.target.id.startswith("_"):
            default = "" if each.value is None else f" = {ast.unparse(each.value)}"
            yield f"- `{each.target.id}: {ast.unparse(each.annotation)}{default}`{_meaning(below)}"
        elif isinstance(each, ast.FunctionDef) and each.name == "__init__":
            yield from _set_by(each)


def _set_by(made: ast.FunctionDef) -> Iterator[str]:
    for line, below in zip(made.body, [*made.body[1:], None], strict=True):
        target, annotation, meaning = None, "", _meaning(below)
        if isinstance(line, ast.AnnAssign):
            target, annotation = line.target, f": {ast.unparse(line.annotation)}"
        elif isinstance(line, ast.Assign) and meaning:
            (target,) = line.targets
        if isinstance(target, ast.Attribute) and not target.attr.startswith("_"):
            yield f"- `{target.attr}{annotation}`{meaning}"


def _meaning(below: ast.stmt | None) -> str:
    """The attribute docstring, if that is what stands below an attribute."""
    if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
        return f": {' '.join(_prose(below.value.value).split())}"
    return ""


def _signature(name: str, node: _Function) -> str:
    """As a caller sees it; on lines of its own where one would be too long."""
    arguments = node.args
    given = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(given) - len(arguments.defaults))
    parts = [_parameter(*each) for each in zip(given, [*defaults, *arguments.defaults], strict=True)]
    if given and given[0].arg in ("self", "cls"):
        del parts[0]
    if arguments.vararg is not None:
        parts.append(f"*{_parameter(arguments.vararg, None)}")
    elif arguments.kwonlyargs:
        parts.append("*")
    parts += [_parameter(*each) for each in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    if arguments.kwarg is not None:
        parts.append(f"**{_parameter(arguments.kwarg, None)}")
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None and node.name != "__init__" else ""
    name = f"async with {name}" if _is_decorated(node, "asynccontextmanager") else name
    line = f"{name}({', '.join(parts)}){returns}"
    if len(line) <= 100:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," if part != "*" else "    *," for part in parts), f"){returns}"])


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    annotation = "" if argument.annotation is None else f": {ast.unparse(argument.annotation)}"
    if default is None:
        return argument.arg + annotation
    sign = " = " if annotation else "="
    return f"{argument.arg}{annotation}{sign}{ast.unparse(default)}"


def _fixtures() -> Iterator[str]:
    yield "## Fixtures"
    yield ""
    yield "| fixture | scope | type | |"
    yield "| --- | --- | --- | --- |"
    for node in _tree(_PLUGIN).body:
        if isinstance(node, _Function) and _is_decorated(node, "fixture"):
            assert node.returns is not None
            made = re.sub(r"^Iterator\[(.*)\]$", r"\1", ast.unparse(node.returns)).replace("|", "\\|")
            meaning = " ".join(_prose(ast.get_docstring(node) or "").split()).replace("|", "\\|")
            yield f"| `{node.name}` | {_scope(node)} | `{made}` | {meaning} |"
    yield ""


def _scope(node: _Function) -> str:
    for decorator in node.decorator_list:
        for keyword in getattr(decorator, "keywords", []):
            if keyword.arg == "scope":
                return str(ast.literal_eval(keyword.value))
    return "function"


def _is_decorated(node: _Function, name: str) -> bool:
    """Whether a decorator's last name is ``name``, called or not."""
    for decorator in node.decorator_list:
        function = decorator.func if isinstance(decorator, ast.Call) else decorator
        if ast.unparse(function).rpartition(".")[2] == name:
            return True
    return False


def _prose(docstring: str) -> str:
    """A docstring as Markdown."""
    return docstring.replace("``", "`")


@functools.cache
def _tree(module: str) -> ast.Module:
    return ast.parse((_ROOT / module).read_text())


def _named(module: str, name: str) -> ast.ClassDef | _Function:
    for node in _tree(module).body:
        if isinstance(node, ast.ClassDef | _Function) and node.name == name:
            return node
    raise LookupError(f"{module} has no {name}")


if __name__ == "__main__":
    print(page(), end="")
