"""The filter bar of records: rows of a field, an operator and a value, and the parameters of an address that they stand for.

=================  =============  ==========  ====================
field              operator       value       parameter
=================  =============  ==========  ====================
``key``            equals         text        ``key``
``value``          contains       text        ``contains``
``header NAME``    equals         text        ``header=NAME=text``
``header NAME``    is there                   ``header=NAME``
a JSON path        equals         a scalar    ``path=$.a = scalar``
a JSON path        is there                   ``path=$.a``
=================  =============  ==========  ====================

An address keeps the parameters (``questions``), so that a link says what it finds; a form sends the rows, one ``field``, one
``operator`` and one ``operand`` each. Each parameter may be there once, so there is at most one row of a kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .questions import WrongQuestionError

EQUALS, CONTAINS, IS_THERE = "equals", "contains", "is there"
OPERATORS = (EQUALS, CONTAINS, IS_THERE)
FIELDS = ("value", "key", "header ", "$.")
"""What a field begins with."""
PARAMETERS = ("key", "header", "contains", "path")
_HEADER = "header "
_MOST_ROWS = 8


class FilterRow(NamedTuple):
    """A row of the bar."""

    field: str
    operator: str = EQUALS
    operand: str = ""
    parameter: str = ""
    """The parameter that it stands for; empty for a row that stands for none yet."""


def rows_of(given: Mapping[str, str]) -> list[FilterRow]:
    """The rows that show the parameters of an address."""
    rows = []
    if key := given.get("key", ""):
        rows.append(FilterRow("key", EQUALS, key, "key"))
    if header := given.get("header", ""):
        name, has_value, text = header.partition("=")
        rows.append(FilterRow(_HEADER + name, EQUALS if has_value else IS_THERE, text, "header"))
    if contains := given.get("contains", ""):
        rows.append(FilterRow("value", CONTAINS, contains, "contains"))
    if path := given.get("path", ""):
        place, is_compared, text = _split(path)
        rows.append(FilterRow(place, EQUALS if is_compared else IS_THERE, text, "path"))
    return rows


def _split(path: str) -> tuple[str, bool, str]:
    """A condition on a JSON path as its place and its value: the first ``=`` that stands in no quotes is between them."""
    quote = ""
    for position, character in enumerate(path):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "=":
            start = (
                position + 2
                if path.startswith("==", position) and path[position + 2 : position + 3] != "="
                else position + 1
            )
            return path[:position].strip(), True, path[start:].strip()
    return path.strip(), False, ""


def sent_rows(given: Sequence[tuple[str, str]]) -> list[FilterRow] | None:
    """The rows of a form that was sent; None for an address that no form made. Rows without a field and a value are left out."""
    fields, operators, operands = (
        [text for name, text in given if name == each] for each in ("field", "operator", "operand")
    )
    if not fields and not operands:
        return None
    operators += [""] * len(fields)
    operands += [""] * len(fields)
    rows = [FilterRow(*row) for row in zip(fields, operators, operands, strict=False)][:_MOST_ROWS]
    return [row._replace(field=row.field.strip()) for row in rows if row.field.strip() or row.operand]


def parameters_of(rows: Sequence[FilterRow]) -> dict[str, str]:
    """The parameters of the rows. Raises WrongQuestionError, of the field ``filter-N`` for row N, from 0 on."""
    found: dict[str, str] = {}
    for number, row in enumerate(rows):
        name, text = _parameter(row, f"filter-{number}")
        if name in found:
            raise WrongQuestionError(
                f"There is another filter of {_kind(name)}: one of a kind can hold.", f"filter-{number}"
            )
        found[name] = text
    return found


def _parameter(row: FilterRow, place: str) -> tuple[str, str]:
    field, operator, operand = row.field, row.operator, row.operand
    if operator not in OPERATORS:
        raise WrongQuestionError(f"A filter {', '.join(OPERATORS)}; not {operator or 'nothing'}.", place)
    if operator != IS_THERE and not operand:
        raise WrongQuestionError(f"The filter “{field or 'field'} {operator}” needs a value.", place)
    if field == "key":
        _only(EQUALS, row, place)
        return "key", operand
    if field == "value":
        _only(CONTAINS, row, place)
        return "contains", operand
    if field.startswith("$"):
        _not(CONTAINS, row, place)
        return "path", field if operator == IS_THERE else f"{field} = {operand}"
    if field.startswith(_HEADER) and (name := field.removeprefix(_HEADER).strip()) and "=" not in name:
        _not(CONTAINS, row, place)
        return "header", name if operator == IS_THERE else f"{name}={operand}"
    raise WrongQuestionError(
        f"{field or 'Nothing'} is not a field: key, value, header NAME, or a JSON path such as $.order.id.", place
    )


def _only(operator: str, row: FilterRow, place: str) -> None:
    if row.operator != operator:
        hint = "; a place in it, as $.order.id, also equals" if row.field == "value" else ""
        raise WrongQuestionError(f"A filter of the {row.field} has one operator, {operator}{hint}.", place)


def _not(operator: str, row: FilterRow, place: str) -> None:
    if row.operator == operator:
        raise WrongQuestionError(f"A filter of {row.field} {EQUALS} or {IS_THERE}.", place)


def _kind(parameter: str) -> str:
    return {"key": "the key", "contains": "the value", "header": "a header", "path": "a JSON path"}[parameter]
