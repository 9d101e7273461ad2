"""The subcommands of ``ottla`` and their options; what they do is imported when they run."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..spark.cli import app as spark_app

app = typer.Typer(
    name="ottla",
    help="A Kafka wire-compatible broker: every Kafka client works against it unchanged.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(spark_app, name="spark")


def _show_version(value: bool) -> None:
    if value:
        from .. import __version__

        typer.echo(f"ottla {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    pass


@app.command()
def serve(
    listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Address to listen on; port 0 picks a free one. [127.0.0.1:9092]"),
    ] = None,
    advertise: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Address that clients are told to connect to, if it is another."),
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(metavar="DIR", help="Data folder. [./data]")] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A server.properties with Kafka's property names.")
    ] = None,
    override: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A property; stronger than the file. May be repeated."),
    ] = None,
    log_level: Annotated[str, typer.Option(metavar="LEVEL", help="debug, info, warning or error.")] = "info",
) -> None:
    """Run a broker until SIGTERM or Ctrl-C.

    Examples:

      ottla serve

      ottla serve --listen 0.0.0.0:9092 --advertise kafka.example.org:9092 --data-dir /var/lib/ottla

      ottla serve --config server.properties --override num.partitions=3
    """
    # Most of a start is imports, whose objects live to the end: collecting among them is lost time.
    gc.disable()
    from .serve import run

    sys.exit(run(listen, advertise, data_dir, config, override or [], log_level))


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
def compat(context: typer.Context) -> None:
    """Run the compatibility suite of stock clients; its options are pytest's and --bootstrap-server HOST:PORT.

    Without --bootstrap-server it starts a broker of its own. Needs pip install 'ottla[compat]'.
    """
    from ..compat_tests.run import main as run_suite

    sys.exit(run_suite(context.args))
