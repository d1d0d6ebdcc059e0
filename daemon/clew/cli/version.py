"""`clew version`."""

from importlib.metadata import version as version_of

import click


@click.command()
def version() -> None:
    """Print the version."""
    click.echo(f"clew {version_of('clew')}")
