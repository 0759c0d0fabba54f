"""The displayed part of an image's inventory: main packages, and search results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from portal.core.apps.catalog import Image
from portal.core.images.inventory import Inventory, Kind, Package

KINDS: dict[Kind, str] = {"pip": "Python", "deb": "Debian", "rpm": "RPM", "apk": "Alpine"}
"""Displayed names of the package managers."""
MOST_KEY = 16
_PYTHON = {
    "tensorflow": "", "tensorflow-cpu": "tensorflow", "keras": "", "torch": "pytorch",
    "torchvision": "", "torchaudio": "", "jax": "", "numpy": "", "scipy": "", "pandas": "",
    "polars": "", "matplotlib": "", "seaborn": "", "plotly": "", "bokeh": "",
    "scikit-learn": "sklearn", "xgboost": "", "lightgbm": "", "statsmodels": "", "sympy": "",
    "numba": "", "dask": "", "h5py": "hdf5", "mpi4py": "mpi", "transformers": "", "datasets": "",
    "opencv-python": "cv2", "opencv-python-headless": "cv2", "pillow": "", "tensorboard": "",
    "jupyterlab": "", "notebook": "jupyter",
}  # fmt: skip
"""Python packages by importance, with additional search words."""
_SYSTEM = (
    (r"python3", "python"),
    (r"r-base-core", "r language"),
    (r"julia", ""),
    (r"gcc-\d+|g\+\+-\d+|gfortran-\d+|gcc|gcc-c\+\+", "c++ compiler"),
    (r"clang-\d+|clang", "c++ compiler"),
    (r"openmpi-bin|openmpi|mpich", "mpi"),
    (r"cmake|gdb|make|git|octave|nodejs|golang|rustc|emacs|vim", ""),
    (r"(default|openjdk-\d+)-jdk(-headless)?", "java"),
    (r"xfce4|tigervnc-standalone-server|firefox-esr|chromium", ""),
    (r"texlive(-latex-base)?", "latex"),
    (r"r-cran-(ggplot2|dplyr|tidyverse|data\.table|irkernel)", "r language"),
    (r"busybox", ""),
)
"""Packages of distributions: patterns of their names, with additional search words."""


@dataclass(frozen=True)
class Inside:
    """One image that a user may launch, with its inventory."""

    image: Image
    inventory: Inventory | None
    """None if there is none, for example for a file that was copied into the folder."""

    @property
    def key(self) -> list[Package]:
        """The most important packages."""
        return key_packages(self.inventory.packages) if self.inventory else []


def key_packages(packages: Iterable[Package]) -> list[Package]:
    """The packages for which users choose an image, most important first; at most MOST_KEY."""
    ranked = sorted(
        (rank, package) for package in set(packages) if (rank := _rank(package)) is not None
    )
    return [package for _, package in ranked][:MOST_KEY]


def search_words(packages: Iterable[Package]) -> tuple[str, ...]:
    """Search words of an image: names of its main packages, and synonyms."""
    key = key_packages(packages)
    words = (word for p in key for word in (p.name.casefold(), _synonyms(p)))
    return tuple(dict.fromkeys(word for word in words if word))


def matching(packages: Sequence[Package], text: str) -> list[Package]:
    """The packages whose names contain every word of a text, sorted; "_" and "-" are equal."""
    words = [_plain(word) for word in text.split()]
    matches = [p for p in packages if all(word in _plain(p.name) for word in words)]
    return sorted(matches, key=lambda p: (_plain(p.name), p.kind, p.version))


def short_version(package: Package) -> str:
    """The upstream version, without epoch and the distribution's revision."""
    if package.kind == "pip":
        return package.version
    version = package.version.partition(":")[2] or package.version
    return re.split(r"[-+~]", version, maxsplit=1)[0]


def _plain(name: str) -> str:
    return name.casefold().replace("_", "-")


def _rank(package: Package) -> tuple[int, int] | None:
    """The position of a main package in the ranking; None for other packages."""
    if package.kind == "pip":
        name = _plain(package.name)
        return (1, list(_PYTHON).index(name)) if name in _PYTHON else None
    index = next((i for i, (names, _) in enumerate(_SYSTEM) if _matches(names, package)), None)
    return None if index is None else (0 if index < len(_LANGUAGES) else 2, index)


_LANGUAGES = _SYSTEM[:3]
"""The languages themselves, which come first."""


def _matches(names: str, package: Package) -> bool:
    return re.fullmatch(names, package.name) is not None


def _synonyms(package: Package) -> str:
    if package.kind == "pip":
        return _PYTHON[_plain(package.name)]
    return next(words for names, words in _SYSTEM if _matches(names, package))
