"""``ottla certs``: the subcommand and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import HELP, Debug, run

app = typer.Typer(name="certs", add_completion=False, rich_markup_mode=None)


@app.command(context_settings=HELP)
def certs(
    directory: Annotated[Path, typer.Option(metavar="DIR", help="The directory of the files.")] = Path("certs"),
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            metavar="HOST",
            help="A name or address of the brokers; may be repeated. [localhost, 127.0.0.1, ::1]",
        ),
    ] = None,
    client: Annotated[
        list[str] | None,
        typer.Option("--client", metavar="NAME", help="A client that gets a certificate; may be repeated."),
    ] = None,
    days: Annotated[int, typer.Option(metavar="N", min=1, help="Their validity.")] = 365,
    debug: Debug = False,
) -> None:
    """Make certificates for development: an authority, one for brokers, and one for each client.

    A later run uses the same authority, so it can add clients. It keeps the brokers' certificate, unless hosts are named. The
    trusted certificate is in ca.pem, keys with their certificates in broker.pem and NAME.pem, and settings for a broker or a
    client in broker.properties and NAME.properties. Keys are not encrypted: everyone who reads the file can act as its owner.
    Outside of development, use a real authority.

    \b
    Examples:
      ottla certs --host localhost --host broker1.example.com
      ottla certs --client alice --client bob
    """
    from ..tools.access import certs

    run(debug, certs.make, directory, hosts=tuple(host or ()), clients=tuple(client or ()), days=days)
