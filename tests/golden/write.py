"""Write a file of published bytes that is not there yet: `python tests/golden/write.py releases.json`."""

import sys
import warnings

from golden_files import FILES, write

import retroact as ra

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in FILES:
        raise SystemExit(f"expected one of {', '.join(FILES)}")
    warnings.simplefilter("ignore", ra.HorizonWarning)
    write(sys.argv[1])
