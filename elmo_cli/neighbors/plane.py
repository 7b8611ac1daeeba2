"""Vectors to points of a plane: principal components, or UMAP where it is installed."""

import numpy as np
from numpy.typing import NDArray

from elmo_cli.neighbors.part import Floats
from elmo_cli.storage.extras import umap_module

_LEAST_FOR_UMAP = 5  # vectors; below, it has no neighbours to keep together


def principal_plane(vectors: Floats) -> NDArray[np.float64]:
    """Return each vector's coordinates along the two directions of the largest spread [n, 2].

    Signs are chosen so that the coordinate of the largest size is positive, as a decomposition leaves them open.
    """
    centered = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    if len(vectors) < 2:
        return np.zeros((len(vectors), 2))
    left, sizes, _ = np.linalg.svd(centered, full_matrices=False)
    points = left[:, :2] * sizes[:2]
    if points.shape[1] < 2:
        points = np.pad(points, ((0, 0), (0, 1)))
    largest = points[np.abs(points).argmax(axis=0), [0, 1]]
    return np.asarray(points * np.where(largest < 0, -1.0, 1.0))


def umap_plane(vectors: Floats, *, seed: int) -> NDArray[np.float64]:
    """Return UMAP's coordinates by cosine [n, 2].

    Raises:
        ConfigError: umap-learn is not installed.
    """
    umap = umap_module()
    if len(vectors) < _LEAST_FOR_UMAP:
        return principal_plane(vectors)
    neighbors = min(15, len(vectors) - 1)
    fitted = umap.UMAP(n_neighbors=neighbors, metric="cosine", random_state=seed, n_jobs=1, init="random")
    return np.asarray(fitted.fit_transform(vectors), np.float64)


def spread_points(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points scaled into the square from 0 to 1, both axes alike."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = float((high - low).max()) or 1.0
    return np.asarray((points - (low + high) / 2) / size + 0.5)
