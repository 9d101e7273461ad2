"""``ottla compat``: the subcommand and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import HELP, CommandConfig, run

app = typer.Typer(name="compat", add_completion=False, rich_markup_mode=None)


@app.command(context_settings=HELP | {"allow_extra_args": True, "ignore_unknown_options": True})
def compat(
    context: typer.Context,
    bootstrap_server: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-server",
            "-b",
            metavar="HOST:PORT[,…]",
            help="The broker to test, by default at port 9092. [one that the run starts, as with --broker]",
        ),
    ] = None,
    command_config: CommandConfig = None,
    broker: Annotated[
        str, typer.Option(metavar="NAME", help="The broker to start: ottla, or kafka (Apache Kafka, from jars).")
    ] = "ottla",
    brokers: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Number of brokers to start; several form a cluster on ZooKeeper (jars)."
        ),
    ] = 1,
    client: Annotated[
        list[str] | None, typer.Option("--client", metavar="NAME", help="Only this client; may be repeated.")
    ] = None,
    details: Annotated[bool, typer.Option("--details", help="A row for each single capability.")] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write everything there as JSON; - is stdout.")
    ] = None,
    html_file: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page for browsers.")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show pytest's own output, with tracebacks.")] = False,
) -> None:
    """Run the compatibility suite of stock clients against any broker.

    Topics and groups have unused names, and topics are deleted afterwards. Tests that kill or restart the broker run only on
    a broker of this run. Exit code: 0 all passed, 1 a test failed or the suite cannot be read, 2 there was nothing to run.
    Other options and words are pytest's.

    \b
    Examples:
      ottla compat
      ottla compat --bootstrap-server 127.0.0.1:9092 --html compat.html
      ottla compat --client aiokafka --client kcat --details
      ottla compat --client kafka-python python/test_groups.py -k static --debug
      ottla compat --json - | jq '.cells[] | select(.outcome == "fail")'
    """
    from ..tools import compat

    def is_from(source: str, *parameters: str) -> bool:
        return any(str(getattr(context.get_parameter_source(name), "name", "")) == source for name in parameters)

    # What the command line says is stronger than what the environment says for all commands.
    starts_one = bootstrap_server is None or (
        is_from("ENVIRONMENT", "bootstrap_server") and is_from("COMMANDLINE", "broker", "brokers")
    )
    if starts_one:
        bootstrap_server = None
        command_config = None if is_from("ENVIRONMENT", "command_config") else command_config
    options = compat.CompatOptions(
        bootstrap_server=bootstrap_server,
        command_config=command_config,
        broker=broker,
        brokers=brokers,
        clients=tuple(client or ()),
        details=details,
        json_file=json_file,
        html_file=html_file,
        show_pytest=debug,
        words=tuple(context.args),
    )
    run(debug, compat.compat, options)
