"""The memory that this program had at its peak: `getrusage` begins with the size of the process that started it, and
counts what was long ago."""

from pathlib import Path


def peak_memory() -> int:
    """In kilobytes, since the start or since `forget_the_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def forget_the_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")
