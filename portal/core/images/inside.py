"""What people see of an image's inventory: the main packages, and those that they look for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from portal.core.apps.catalog import Image
from portal.core.images.inventory import Inventory, Kind, Package

KINDS: dict[Kind, str] = {"pip": "Python", "deb": "Debian", "rpm": "RPM", "apk": "Alpine"}
"""How pages name where a package comes from."""
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
"""Packages from the Python package index by importance, with other words that find them."""
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
"""The same for packages of distributions: expressions for their names."""


@dataclass(frozen=True)
class Inside:
    """One image that a person may use, with what is known of it."""

    image: Image
    inventory: Inventory | None
    """None if nothing wrote one, as for a file that was copied here."""

    @property
    def key(self) -> list[Package]:
        """The packages that matter most."""
        return key_packages(self.inventory.packages) if self.inventory else []


def key_packages(packages: Iterable[Package]) -> list[Package]:
    """The packages that people choose an image for, the most important first; 16 at most."""
    ranked = sorted((rank, one) for one in set(packages) if (rank := _rank(one)) is not None)
    return [one for _, one in ranked][:MOST_KEY]


def search_words(packages: Iterable[Package]) -> tuple[str, ...]:
    """What the search for environments finds an image by: names, and other words for them."""
    found = key_packages(packages)
    words = (word for one in found for word in (one.name.casefold(), _also(one)))
    return tuple(dict.fromkeys(word for word in words if word))


def matching(packages: Sequence[Package], text: str) -> list[Package]:
    """The packages whose names contain every word of a text, by name; numpy_x is numpy-x."""
    words = [_plain(word) for word in text.split()]
    found = [one for one in packages if all(word in _plain(one.name) for word in words)]
    return sorted(found, key=lambda one: (_plain(one.name), one.kind, one.version))


def short_version(package: Package) -> str:
    """The version of the program itself, without the distribution's additions."""
    if package.kind == "pip":
        return package.version
    version = package.version.partition(":")[2] or package.version
    return re.split(r"[-+~]", version, maxsplit=1)[0]


def _plain(name: str) -> str:
    return name.casefold().replace("_", "-")


def _rank(package: Package) -> tuple[int, int] | None:
    """Its place in the list, from the front; None if it is not one of these."""
    if package.kind == "pip":
        name = _plain(package.name)
        return (1, list(_PYTHON).index(name)) if name in _PYTHON else None
    place = next((i for i, (names, _) in enumerate(_SYSTEM) if _named(names, package)), None)
    return None if place is None else (0 if place < len(_LANGUAGES) else 2, place)


_LANGUAGES = _SYSTEM[:3]
"""The languages themselves, which come first."""


def _named(names: str, package: Package) -> bool:
    return re.fullmatch(names, package.name) is not None


def _also(package: Package) -> str:
    if package.kind == "pip":
        return _PYTHON[_plain(package.name)]
    return next(words for names, words in _SYSTEM if _named(names, package))
