"""`mixbandit` and `python -m mixbandit`."""

from __future__ import annotations

import sys

from mixbandit._extras import import_extra
from mixbandit.errors import MissingDependency


def main() -> None:
    """Run the command line; errors are messages, and the exit code tells them apart (mixbandit.cli.exits)."""
    try:
        import_extra("typer", extra="cli")
        import_extra("rich", extra="cli")
    except MissingDependency as error:
        sys.exit(f"mixbandit: {error}")
    from mixbandit.cli import app
    from mixbandit.cli.exits import stop_orderly

    stop_orderly()
    app()


if __name__ == "__main__":
    main()
