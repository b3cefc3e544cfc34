"""`python -m tandem` is the command `tandem`."""

from tandem.cli.app import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
