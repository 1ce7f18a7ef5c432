"""The command line. Nothing heavy is imported before a command runs, so `retroact --help` answers at once."""

from .main import main

__all__ = ["main"]
