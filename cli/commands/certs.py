"""``ottla certs``: the subcommand and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import HELP, Debug, run

app = typer.Typer(name="certs", add_completion=False, rich_markup_mode=None)


@app.command(context_settings=HELP)
def certs(
    directory: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the files.")] = Path("certs"),
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
        typer.Option("--client", metavar="NAME", help="A client to make a certificate for; may be repeated."),
    ] = None,
    days: Annotated[int, typer.Option(metavar="N", min=1, help="How long they are valid.")] = 365,
    debug: Debug = False,
) -> None:
    """Make certificates for development: an authority, one for brokers, and one for each client.

    The authority of an earlier run is used again, with which a client can be added later; so is the brokers' certificate, unless
    hosts are named. Files: ca.pem (what is trusted), ca-key.pem, broker.pem and NAME.pem (key and certificate together),
    broker.properties and NAME.properties (the settings, to be put into a broker's or to be given to a client). A key is not
    encrypted: whoever reads the file can act in its owner's name. For more than development, have a real authority sign.

    \b
    Examples:
      ottla certs --host localhost --host broker1.example.com
      ottla certs --client alice --client bob
    """
    from ..tools.access import certs

    run(debug, certs.make, directory, hosts=tuple(host or ()), clients=tuple(client or ()), days=days)
