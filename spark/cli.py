"""``ottla spark …``: the jobs as commands. pyspark is imported when one of them runs.

Errors end in one line on stderr and exit status 1 (2 for options that make no sense, as everywhere).
"""

from __future__ import annotations

import typer

from .commands.archive import archive
from .commands.audit import audit
from .commands.lag import lag
from .commands.load import load
from .commands.mirror import mirror
from .commands.pipeline import explain_pipeline, run_pipeline
from .commands.replay import replay

app = typer.Typer(
    name="spark",
    help="Spark jobs on topics (needs the extra spark, and Java 17).",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


@app.callback()
def main() -> None:
    """Spark jobs on topics (needs the extra spark, and Java 17)."""


app.command("archive")(archive)
app.command("load")(load)
app.command("replay")(replay)
app.command("audit")(audit)
app.command("mirror")(mirror)
app.command("lag")(lag)
app.command("run")(run_pipeline)
app.command("explain")(explain_pipeline)
