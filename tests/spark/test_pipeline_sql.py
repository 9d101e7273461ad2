"""A pipeline's SQL is looked through without Spark: what is wrong is one line with its place, what is right passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.spark.pipeline.declaration import Pipeline, read
from ottla.spark.pipeline.sql_check import check_sql
from ottla.spark.query import JobError

EXAMPLES = Path(__file__).parents[2] / "spark" / "examples"
AVRO = (
    '{"type": "record", "name": "Visit", "fields": [{"name": "Who", "type": "string"}, {"name": "n", "type": "long"}]}'
)

PIPELINE = f"""
name = "p"
checkpoint = "c"
[sources.lines]
topics = ["lines"]
[sources.clicks]
topics = ["clicks"]
format = "json"
schema = "user STRING, page STRING, at TIMESTAMP, tags ARRAY<STRUCT<name: STRING, n: INT>>, place STRUCT<city: STRING>"
[sources.visits]
topics = ["visits"]
format = "avro"
schema = '{AVRO}'
"""


def pipeline(folder: Path, rest: str) -> Pipeline:
    file = folder / "p.toml"
    file.write_text(PIPELINE + rest)
    return read(file)


def step(sql: str, view: str = "made") -> str:
    return f'[[steps]]\nview = "{view}"\nsql = """{sql}"""\n[sinks.out]\nview = "{view}"\nconsole = true\n'


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_shipped_pipelines_pass(path: Path) -> None:
    check_sql(read(path))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT Value, OFFSET FROM Lines",
        "SELECT * EXCEPT (value) FROM lines",
        "SELECT transform(split(CAST(value AS STRING), ','), x -> upper(x)) AS parts FROM lines",
        "SELECT w FROM lines LATERAL VIEW explode(split(CAST(value AS STRING), ' ')) t AS w",
        "SELECT h.key, h.value AS v FROM lines LATERAL VIEW explode(headers) AS h",
        "SELECT inline(tags) FROM clicks",
        "SELECT place.*, tags[0].name FROM clicks",
        "WITH a AS (SELECT value v FROM lines) SELECT v FROM a",
        "SELECT offset + 1 AS o, o * 2 AS p FROM lines",
        "SELECT l.value FROM lines l WHERE l.offset IN (SELECT offset FROM lines)",
        "SELECT l.value FROM lines l WHERE EXISTS (SELECT 1 FROM clicks WHERE clicks.page = CAST(l.key AS STRING))",
        "SELECT page, window.start AS minute, count(*) FROM clicks GROUP BY page, window(at, '1 minute')",
        "SELECT window_time(window) AS at, count(*) AS n FROM clicks GROUP BY window(at, '1 minute')",
        "SELECT user, session_window.end, count(*) FROM clicks GROUP BY user, session_window(at, '5 minutes')",
        "SELECT posexplode(split(CAST(value AS STRING), ',')) AS (p, v) FROM lines",
        "SELECT value FROM lines UNION ALL SELECT CAST(user AS BINARY) FROM clicks",
        "SELECT key, value FROM lines QUALIFY row_number() OVER (PARTITION BY key ORDER BY offset) = 1",
        "SELECT c.page FROM clicks c JOIN visits v ON c.user = v.who AND c.at > v._timestamp",
        "SELECT page, n FROM (SELECT page, count(*) AS n FROM clicks GROUP BY page) WHERE n > 1",
        "SELECT count(*) FILTER (WHERE offset > 1) AS n, timestampType FROM lines GROUP BY ALL",
        "SELECT value, _rank FROM (SELECT *, row_number() OVER (PARTITION BY key ORDER BY offset) _rank FROM lines)",
        "SELECT page FROM clicks_rejected JOIN clicks ON offset = _offset",
        "SELECT id FROM range(10)",
        "SELECT window.start, count(*) FROM clicks GROUP BY window (at, '1 minute', '10 seconds'), page",
        "SELECT page, count(*) OVER w AS n FROM clicks WINDOW w AS (PARTITION BY page)",
        "FROM lines SELECT value",
        "SELECT at + INTERVAL 5 MINUTES AS later, at::DATE AS day FROM clicks ORDER BY day;",
        "SELECT col1 FROM VALUES (1), (2)",
        "SELECT any_column_at_all FROM parquet.`/lake/customers`",
    ],
)
def test_what_spark_takes(tmp_path: Path, sql: str) -> None:
    check_sql(pipeline(tmp_path, step(sql)))


@pytest.mark.parametrize(
    ("sql", "line"),
    [
        ("SELECT value FRM lines", "invalid expression / Unexpected token at 'lines' (line 1, column 18)"),
        ("SELECT value\nFROM lines\nWHERE (", "something is missing at '(' (line 3, column 7)"),
        ("SELECT 'x FROM lines", "Error tokenizing"),
        ("SELECT value FROM line", "there is no view line; did you mean lines? (line 1, column 19)"),
        ("SELECT pag FROM clicks", "there is no column pag; did you mean page? (line 1, column 8)"),
        ("SELECT user,\n       pge\nFROM clicks", "there is no column pge; did you mean page? (line 2, column 8)"),
        ("SELECT c.offset FROM clicks c", "Unknown column: offset"),
        ("SELECT x.page FROM clicks c", "there is no column x.page"),
        ("SELECT who FROM clicks JOIN lines ON user = missing", "there is no column"),
        ("SELECT page FROM clicks WHERE page IN (SELECT nope FROM lines)", "there is no column nope"),
        ("SELECT 1; SELECT 2", "it must be one query: SELECT …"),
        ("", "it must be one query: SELECT …"),
        ("DROP TABLE lines", "it must be one query: SELECT …"),
    ],
)
def test_mistakes_in_a_step(tmp_path: Path, sql: str, line: str) -> None:
    with pytest.raises(JobError) as caught:
        check_sql(pipeline(tmp_path, step(sql)))
    assert str(caught.value).startswith(f"steps.0 (view made): {line}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("rest", "line"),
    [
        (
            '[sinks.out]\nview = "clicks"\ntopic = "t"\nkey = "usr"',
            "sinks.out.key: there is no column usr; did you mean user? (line 1, column 1)",
        ),
        (
            '[sinks.out]\nview = "clicks"\ntopic = "t"\nvalue = "concat(user, page"',
            "sinks.out.value: expecting )",
        ),
        (
            '[sinks.out]\nview = "clicks"\ntopic = "t"\n[sinks.out.headers]\nwho = "name"',
            "sinks.out.headers.who: there is no column name",
        ),
        (
            '[sinks.out]\nview = "visits"\nparquet = "p"\npartition-by = ["who", "m"]',
            "sinks.out.partition-by: there is no column m",
        ),
        (
            '[sources.a]\ntopics = ["a"]\nevent-time = "time"\nwatermark = "1 hour"\n[sinks.out]\nview="a"\nconsole=true',
            "sources.a.event-time: there is no column time; did you mean timestamp?",
        ),
        (
            '[sources.a]\ntopics = ["a"]\nformat = "json"\nschema = "id STRNG"\n[sinks.out]\nview="a"\nconsole=true',
            "sources.a.schema: expecting ) at 'STRNG' (line 1, column 4)",
        ),
        (
            '[sources.a]\ntopics = ["a"]\nformat = "json"\nschema = "id"\n[sinks.out]\nview="a"\nconsole=true',
            "sources.a.schema: id has no type: columns are written as id STRING, at TIMESTAMP",
        ),
        (
            '[sources.a]\ntopics = ["a"]\nformat = "avro"\nschema = "id STRING"\n[sinks.out]\nview="a"\nconsole=true',
            "sources.a.schema: it is not JSON: ",
        ),
        (
            '[sources.a]\ntopics=["a"]\nformat="avro"\nschema=\'{"type": "long"}\'\n[sinks.out]\nview="a"\nconsole=true',
            "sources.a.schema: values must be a record, not long",
        ),
    ],
)
def test_mistakes_elsewhere(tmp_path: Path, rest: str, line: str) -> None:
    with pytest.raises(JobError) as caught:
        check_sql(pipeline(tmp_path, rest))
    assert str(caught.value).startswith(line)


def test_a_step_reads_those_before_it(tmp_path: Path) -> None:
    first = '[[steps]]\nview = "words"\nsql = "SELECT explode(split(page, \'/\')) AS word FROM clicks"\n'
    check_sql(pipeline(tmp_path, first + step("SELECT word, count(*) AS n FROM words GROUP BY word")))
    with pytest.raises(JobError, match=r"^steps.1 \(view made\): there is no column wrd; did you mean word\?"):
        check_sql(pipeline(tmp_path, first + step("SELECT wrd FROM words")))
