"""``ottla console``: the options."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import DEFAULT_SERVER, HELP, BootstrapServer, CommandConfig, CommandProperty, Debug, run

app = typer.Typer(add_completion=False, context_settings=HELP, rich_markup_mode=None)


@app.command()
def console(
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Address of its pages; port 0 is any free one.")
    ] = "127.0.0.1:8080",
    allow_writes: Annotated[
        bool,
        typer.Option(
            "--allow-writes", help="Let its pages create, change and delete topics, groups' offsets and records."
        ),
    ] = False,
    avro_schema: Annotated[
        list[str] | None,
        typer.Option(
            "--avro-schema", metavar="[TOPIC=]FILE", help="Decode records with this Avro schema; may be repeated."
        ),
    ] = None,
    schema_registry: Annotated[
        str | None,
        typer.Option(
            "--schema-registry", metavar="URL", help="Address of the registry with the Avro schemas that records name."
        ),
    ] = None,
    connect_url: Annotated[
        list[str] | None,
        typer.Option("--connect-url", metavar="URL", help="A worker of Kafka Connect to show; several, with commas."),
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Serve the web console for any Kafka: topics, records, groups and their lag.

    It is a client of the brokers, and changes nothing without --allow-writes. It has no log-in: everyone who reaches its
    address sees all that its user may read. Connections, requests and segments are shown only by the console of an Ottla
    broker, 'ottla serve --console'.

    \b
    Examples:
      ottla console
      ottla console -b kafka1:9092,kafka2:9092 --listen 127.0.0.1:8081
      ottla console -b kafka1:9093 --command-config client.properties
    """
    from ..tools.client import ClusterConnection
    from ..tools.console import serve

    connection = ClusterConnection.of(bootstrap_server, command_config, command_property)
    run(
        debug,
        serve,
        connection,
        listen,
        writes=allow_writes,
        schemas=avro_schema or (),
        schema_registry=schema_registry,
        connect_urls=[url for given in connect_url or () for url in given.split(",") if url],
    )
