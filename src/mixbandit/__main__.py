"""`mixbandit` and `python -m mixbandit`."""

from __future__ import annotations

import sys

from mixbandit._extras import import_extra
from mixbandit.errors import MissingDependency, MixbanditError


def main() -> None:
    """Run the command line; errors of ours are messages, not tracebacks."""
    try:
        import_extra("typer", extra="cli")
        import_extra("rich", extra="cli")
    except MissingDependency as error:
        sys.exit(f"mixbandit: {error}")
    from mixbandit.cli import app

    try:
        app()
    except (MixbanditError, OSError) as error:
        sys.exit(f"mixbandit: {error}")


if __name__ == "__main__":
    main()
