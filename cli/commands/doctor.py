"""``ottla doctor``: the options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import DEFAULT_SERVER, HELP, AsJson, BootstrapServer, CommandConfig, CommandProperty, Debug, run

app = typer.Typer(add_completion=False, context_settings=HELP, rich_markup_mode=None)


@app.command()
def doctor(
    context: typer.Context,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="A server.properties of this machine to check; then brokers only with -b.",
        ),
    ] = None,
    console: Annotated[
        str | None,
        typer.Option("--console", metavar="HOST:PORT", help="An Ottla broker's console, whose overview is read."),
    ] = None,
    watch: Annotated[
        float,
        typer.Option("--watch", metavar="SECONDS", min=0, max=3600, help="Check twice, to see growth. [0: once]"),
    ] = 0.0,
    probe_clocks: Annotated[
        bool,
        typer.Option("--probe-clocks", help="Measure the clocks of brokers with a topic that is made and deleted."),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail with warnings, and with checks that could not be made.")
    ] = False,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Check a broker or a cluster, and print on one page each problem and the command that fixes it.

    It checks brokers, quorum, replicas, topics, groups, transactions, disks, clocks, certificates, versions, settings, limits.
    A line is OK, a note, a warning or a problem, or names a check that could not be made. It works with any Kafka. With
    --config alone it checks a stopped broker's file and disks.

    Exit status: 0 no problem, 1 a problem; with --strict also 1 for a warning or for a check that could not be made.

    \b
    Examples:
      ottla doctor
      ottla doctor -b kafka-1,kafka-2,kafka-3 --watch 60 --probe-clocks
      ottla doctor --config /etc/ottla/server.properties
      ottla doctor --strict --json | jq '.lines[] | select(.level == "problem")'
    """
    from ..tools.client import ClusterConnection
    from ..tools.doctor.doctor import DoctorOptions, doctor

    source = context.get_parameter_source("bootstrap_server")
    is_named = source is not None and source.name == "COMMANDLINE"
    connection = ClusterConnection.of(bootstrap_server, command_config, command_property)
    options = DoctorOptions(config, console, watch, probe_clocks, looks_at_brokers=is_named or config is None)
    run(debug, doctor, connection, options, is_strict=strict, as_json=as_json)
