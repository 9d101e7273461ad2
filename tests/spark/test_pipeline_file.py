"""The pipeline file is checked whole before anything starts, and each mistake is one line that names its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.spark.pipeline import needs
from ottla.spark.pipeline.declaration import read
from ottla.spark.query import JobError

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "spark" / "examples"

GOOD = """
name = "copy"
checkpoint = "checkpoints/copy"
[sources.orders]
topics = ["orders"]
[sinks.copy]
view = "orders"
topic = "orders-copy"
"""


def written(folder: Path, content: str) -> Path:
    path = folder / "pipeline.toml"
    path.write_text(content)
    return path


def test_what_is_left_out_has_a_default(tmp_path: Path) -> None:
    pipeline = read(written(tmp_path, GOOD))
    assert (pipeline.bootstrap_servers, pipeline.trigger, pipeline.steps) == ("127.0.0.1:9092", "once", [])
    assert pipeline.sources["orders"].starting_offsets == "earliest"
    assert pipeline.sinks["copy"].output_mode == "append"


@pytest.mark.parametrize(
    ("more", "source", "group_id"),
    [
        ("", "", "ottla-copy"),
        ('group = "orders-copy"', "", "orders-copy"),
        ('group = ""', "", ""),
        ("", 'bootstrap-servers = "elsewhere:9092"', ""),
    ],
)
def test_group(tmp_path: Path, more: str, source: str, group_id: str) -> None:
    content = f"{more}\n{GOOD}".replace('topics = ["orders"]', f'topics = ["orders"]\n{source}')
    assert read(written(tmp_path, content)).group_id == group_id


def test_options_of_the_command_come_first(tmp_path: Path) -> None:
    pipeline = read(written(tmp_path, GOOD), bootstrap_servers="kafka:9092", checkpoint=None)
    assert (pipeline.bootstrap_servers, pipeline.checkpoint) == ("kafka:9092", "checkpoints/copy")


@pytest.mark.parametrize(
    "written_as", ["2026-03-01T01:00:00+01:00", "2026-03-01T00:00:00Z", "2026-03-01T00:00:00", "2026-03-01 00:00:00"]
)
def test_starting_timestamp(tmp_path: Path, written_as: str) -> None:
    start = f"[sources.m]\ntopics = ['t']\nstarting-timestamp = {written_as}"
    assert read(written(tmp_path, GOOD + start)).sources["m"].starting_timestamp_ms == 1772323200000


def test_a_schema_file_lies_beside_the_pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "pipelines"
    folder.mkdir()
    (folder / "orders.ddl").write_text("id STRING")
    source = "[sources.m]\ntopics = ['t']\nformat = 'json'\nschema-file = 'orders.ddl'"
    monkeypatch.chdir(tmp_path)
    file = written(folder, GOOD + source).relative_to(tmp_path)
    assert read(file).sources["m"].schema_text == "id STRING"


def test_what_is_needed_beside_the_connector(tmp_path: Path) -> None:
    assert needs.packages(read(written(tmp_path, GOOD))) == ()
    schema = '{"type": "record", "name": "R", "fields": []}'
    pipeline = read(
        written(
            tmp_path,
            GOOD
            + f"[sources.m]\ntopics = ['t']\nformat = 'avro'\nschema = '{schema}'\n"
            + "[sinks.d]\nview = 'm'\ndelta = 'd'\n[sinks.i]\nview = 'm'\niceberg = 'lake.i'\n"
            + "[settings]\n'spark.sql.catalog.lake' = 'org.apache.iceberg.spark.SparkCatalog'\n",
        )
    )
    assert needs.packages(pipeline) == (needs.AVRO, needs.DELTA, needs.ICEBERG)
    settings = needs.settings(pipeline)
    assert settings["spark.sql.extensions"].count(",") == 1
    assert settings["spark.sql.catalog.lake"] == "org.apache.iceberg.spark.SparkCatalog"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=str)
def test_shipped_pipelines_are_without_mistake(path: Path) -> None:
    assert read(path).name == path.stem


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        (GOOD + "[sources.more]\ntopik = ['t']", "sources.more.topik: there is no such key; did you mean topics?"),
        (GOOD + "[sources.more]", "sources.more: say which topics: either topics = [...] or pattern"),
        (GOOD + "[sources.more]\npattern = 5", "sources.more.pattern: input should be a valid string"),
        (GOOD + "[sources.1st]\ntopics = ['t']", "sources.1st: a name has letters, digits and underscores"),
        (
            GOOD + "[sources.m]\ntopics = ['t']\nformat = 'json'",
            'sources.m: format = "json" needs schema, or schema-file',
        ),
        (
            GOOD + "[sources.m]\ntopics = ['t']\nformat = 'xml'",
            "sources.m.format: input should be 'raw', 'json', 'avro'",
        ),
        (GOOD + "[sources.m]\ntopics = ['t']\nevent-time = 'at'", "sources.m: event-time and watermark go together"),
        (GOOD + "[sources.m]\ntopics = ['t']\nunique = ['id']", "sources.m: unique needs event-time and watermark"),
        (GOOD + "[sinks.m]\nview = 'orders'", "sinks.m: say where to: one of topic, parquet, delta"),
        (GOOD + "[sources.m]\ntopics = ['t']\nschema = 'id STRING'", 'sources.m: schema goes with format = "json"'),
        (
            GOOD + "[sources.m]\ntopics = ['t']\nformat = 'avro'\nschema-file = 'none.avsc'",
            "sources.m.schema-file: there is no file /",
        ),
        (
            GOOD + "[sources.m]\ntopics = ['t']\nformat = 'protobuf'",
            'sources.m: format = "protobuf" needs schema-file, a descriptor file, and message',
        ),
        (GOOD + "[sources.m]\ntopics = ['t']\nmessage = 'M'", 'sources.m: message goes with format = "protobuf"'),
        (
            GOOD + "[sources.m]\ntopics = ['t']\nstarting-offsets = 'first'",
            "sources.m.starting-offsets: starting offsets are earliest, latest or JSON",
        ),
        (
            GOOD
            + "[sources.m]\ntopics = ['t']\nstarting-offsets = 'latest'\nstarting-timestamp = 2026-03-01T00:00:00Z",
            "sources.m: say where to start: either starting-offsets or starting-timestamp",
        ),
        (
            GOOD + "[sources.m]\ntopics = ['t']\nstarting-timestamp = 'yesterday'",
            "sources.m.starting-timestamp: input should be a valid datetime",
        ),
        (
            GOOD + "[sources.m]\ntopics = ['t']\ntable = true\nstarting-offsets = 'latest'",
            "sources.m: a table takes no event-time",
        ),
        (
            GOOD + "[sinks.m]\nview = 'orders'\nparquet = 'p'\noutput-mode = 'update'",
            "sinks.m: rows in Parquet files do not change: their output-mode is append",
        ),
        (
            GOOD + "[sinks.m]\nview = 'orders'\ndelta = 'p'\noutput-mode = 'update'",
            "sinks.m: the output-mode of a table is append or complete",
        ),
        (
            GOOD + "[sinks.m]\nview = 'orders'\ntopic = 't'\npartition-by = ['key']",
            "sinks.m: partition-by goes with parquet, delta and iceberg",
        ),
        (
            GOOD + "[sinks.m]\nview = 'order'\nconsole = true",
            "sinks.m writes the view order, which does not exist; did you",
        ),
        (GOOD + "[[steps]]\nview = 'orders'\nsql = 'SELECT 1'", "two views are called orders"),
        (GOOD.replace("[sources", "trigger = 'often'\n[sources", 1), "trigger: it is a number and a unit, as"),
        (GOOD.replace('checkpoint = "checkpoints/copy"', ""), "checkpoint: field required"),
        (GOOD.replace("[sinks.copy]", "[sinks.copy"), "Expected ']' at the end of a table declaration (at line 6"),
    ],
)
def test_mistakes(tmp_path: Path, wrong: str, line: str) -> None:
    path = written(tmp_path, wrong)
    with pytest.raises(JobError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: {line}")
    assert "\n" not in str(caught.value)


def test_the_page_shows_the_shipped_word_count() -> None:
    page = (ROOT / "docs/pipelines.md").read_text()
    shipped = (EXAMPLES / "word-count.toml").read_text()
    assert "\n".join(line for line in shipped.splitlines() if not line.startswith("#")) in page
    assert all(f"(../spark/examples/{path.name})" in page for path in EXAMPLES.glob("*.toml"))


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"cannot read .*: No such file or directory"):
        read(tmp_path / "none.toml")
