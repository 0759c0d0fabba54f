"""Where users' packages go: the folder, and the environment in which programs find them."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from portal.node.runner.apps.packages import FOLDER, Packages, environment
from tests.support.paths import ROOT

TOOLKIT = ROOT / "images" / "toolkit"
VERSION = f"python{sys.version_info[0]}.{sys.version_info[1]}"
MODULE = "answer = 42\n"


class Session:
    """A home with mounted folders, and an image whose Python is a virtual environment."""

    def __init__(self, root: Path) -> None:
        self.home, self.image, self.run = root / "home", root / "image", root / "run"
        for folder in (self.home, self.run, root / "bin"):
            folder.mkdir(mode=0o700)
        self.bin = root / "bin"

    def with_python(self) -> None:
        """Make the image's environment, with a package and a program."""
        venv.create(self.image, symlinks=True)
        (self.image / "lib" / VERSION / "site-packages" / "of_image.py").write_text(MODULE)
        self.program(self.image / "bin" / "asks", f"#!{self.image}/bin/python\nimport mine\n")

    def program(self, path: Path, text: str = "#!/bin/sh\n") -> None:
        """Write a program."""
        path.write_text(text)
        path.chmod(0o755)

    def mount(self, name: str, mode: int = 0o700) -> Path:
        """A mounted folder."""
        folder = self.home / name
        folder.mkdir()
        folder.chmod(mode)
        return folder

    def variables(self, *folders: str, **more: str) -> dict[str, str]:
        """What the apps get, for these folders in the order of their mounts."""
        environ = {"HOME": str(self.home), "PATH": f"{self.image}/bin:{self.bin}", **more}
        packages = Packages("python-3.13", folders)
        return {**environ, **environment(packages, str(self.run), str(TOOLKIT), environ)}

    def does(self, variables: dict[str, str], *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a program as the terminal does, from PATH."""
        shell = 'exec "$@"'
        return subprocess.run(
            ["/bin/sh", "-c", shell, "sh", *argv],
            env=variables,
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def place(folder: Path) -> Path:
    """Of the packages in a mounted folder."""
    return folder / FOLDER / "python-3.13"


def install(base: str) -> None:
    """A package as pip installs it."""
    site = Path(base) / "lib" / VERSION / "site-packages"
    site.mkdir(parents=True, exist_ok=True)
    (site / "mine.py").write_text(MODULE)


@pytest.mark.parametrize("name", ["data", "my dätä; (2026) #1"])
def test_what_is_installed_is_found_by_python_and_by_the_images_programs(
    session: Session, name: str
) -> None:
    session.with_python()
    data = session.mount(name)
    found = session.variables(name)
    assert found["PYTHONUSERBASE"] == f"{place(data)}/python"
    told = session.does(found, "python3", "-c", "import of_image, sys; print(sys.prefix)")
    assert told.stdout.strip() == found["PYTHONUSERBASE"], told.stderr
    assert session.does(found, "asks").returncode == 1
    install(found["PYTHONUSERBASE"])
    assert session.does(found, "asks").returncode == 0
    # The next session finds the same, and the image's own Python, which is JupyterLab's, nothing.
    assert session.does(session.variables(name), "python", "-c", "import mine").returncode == 0
    own = session.does(found, f"{session.image}/bin/python3", "-c", "import mine")
    assert own.returncode == 1
    assert found["SLIPWAY_PATH"] == f"{session.image}/bin:{session.bin}"


def test_pip_may_install_for_the_user_as_well(session: Session) -> None:
    """pip refuses --user where a virtual environment does not see the system's packages."""
    session.with_python()
    session.mount("data")
    found = session.variables("data")
    code = "import site; print(site.ENABLE_USER_SITE, site.getusersitepackages())"
    told = session.does(found, "python3", "-c", code).stdout.split()
    assert told == ["True", f"{found['PYTHONUSERBASE']}/lib/{VERSION}/site-packages"]


def test_an_environment_of_the_users_sees_them_only_if_it_wants(session: Session) -> None:
    session.with_python()
    session.mount("data")
    found = session.variables("data")
    install(found["PYTHONUSERBASE"])
    for name, options, code in (("sees", ["--system-site-packages"], 0), ("not", [], 1)):
        session.does(found, "python3", "-m", "venv", "--without-pip", *options, f"data/{name}")
        ran = session.does(found, f"data/{name}/bin/python", "-c", "import of_image, mine")
        assert ran.returncode == code, ran.stderr


@pytest.mark.parametrize("venv_python", [True, False])
def test_kernels_get_unix_sockets_whatever_pythonpath_the_dotfiles_set(
    session: Session, venv_python: bool
) -> None:
    """Before, nbconvert's kernels ended then, since the guard against TCP is always there."""
    if venv_python:
        session.with_python()
    else:
        (session.bin / "python3").symlink_to(sys.base_prefix + "/bin/python3")
    session.mount("data")
    own = session.mount("python")
    (own / "sitecustomize.py").write_text("raise ImportError('of the user')\n")
    found = session.variables("data")
    code = "import sys; print([type(f).__module__ for f in sys.meta_path].count('slipway_python'))"
    for path in (found["PYTHONPATH"], str(own), ""):
        told = session.does({**found, "PYTHONPATH": path}, "python3", "-c", code)
        assert told.stdout == "1\n", told.stderr


def test_sessions_that_start_at_once_or_were_killed_do_not_disturb(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their runners have the same PID, each in a namespace of its own."""
    session.with_python()
    data = session.mount("data")
    binaries = place(data) / "python" / "bin"
    binaries.mkdir(parents=True, mode=0o700)
    (binaries / f"python3.{os.getpid()}").symlink_to("left")
    mkdir = os.mkdir

    def another_one_was_faster(path: str, mode: int = 0o777) -> None:
        mkdir(path, mode)
        raise FileExistsError(path)

    monkeypatch.setattr(os.path, "lexists", lambda path: False)
    monkeypatch.setattr(os, "mkdir", another_one_was_faster)
    assert session.variables("data")["SLIPWAY_PACKAGES"] == "kept"


def test_kernels_that_users_register_stay_with_the_packages(session: Session) -> None:
    session.with_python()
    data = session.mount("data")
    session.variables("data")
    session.variables("data")
    kernels = session.home / ".local" / "share" / "jupyter" / "kernels"
    (kernels / "mine").mkdir()
    assert (place(data) / "python" / "share" / "jupyter" / "kernels" / "mine").is_dir()


def test_nothing_leads_from_the_users_own_home_into_a_mount(session: Session) -> None:
    session.with_python()
    session.mount("data")
    session.variables("data", SLIPWAY_HOME="persistent")
    assert not (session.home / ".local").exists()


# Root writes everywhere, also where nobody may.
@pytest.mark.parametrize("mode", [0o770, 0o777] if os.geteuid() == 0 else [0o500, 0o770, 0o777])
def test_a_folder_that_others_may_write_to_or_nobody_is_not_used(
    session: Session, mode: int
) -> None:
    """What lies there runs as this user."""
    session.with_python()
    session.mount("first", mode)
    if mode == 0o770:
        os.chown(session.home / "first", -1, os.getgid() or 65534)
        os.chmod(session.home / "first", mode)
    second = session.mount("second")
    found = session.variables("first", "second")
    assert found["PYTHONUSERBASE"] == f"{place(second)}/python"
    assert list((session.home / "first").iterdir()) == []
    assert found["SLIPWAY_PACKAGES"] == "kept"


@pytest.mark.parametrize("special", [":", "%", '"', "'", "$", "`", "\\"])
def test_a_name_that_means_more_in_a_list_or_script_is_not_used(
    session: Session, special: str
) -> None:
    session.with_python()
    first, second = session.mount(f"first{special}1"), session.mount("second")
    found = session.variables(first.name, "second")
    assert found["PYTHONUSERBASE"] == f"{place(second)}/python"
    assert list(first.iterdir()) == []


def test_a_link_in_the_place_of_the_packages_is_not_followed(session: Session) -> None:
    session.with_python()
    data, far = session.mount("data"), session.mount("far")
    (data / FOLDER).symlink_to(far)
    found = session.variables("data")
    assert found["PYTHONUSERBASE"] == f"{place(session.home)}/python"
    assert list(far.iterdir()) == []


def test_without_a_folder_they_end_with_the_session_and_it_is_known(session: Session) -> None:
    session.with_python()
    found = session.variables()
    assert found["PYTHONUSERBASE"] == f"{place(session.home)}/python"
    assert found["SLIPWAY_PACKAGES"] == "session"
    # A home that stays is named as a folder.
    assert session.variables("")["SLIPWAY_PACKAGES"] == "kept"


def test_r_julia_and_conda_install_there_as_well(session: Session) -> None:
    data = session.mount("data")
    for name in ("R", "julia", "conda"):
        session.program(session.bin / name)
    found = session.variables("data", R_LIBS_USER="/image/R", JULIA_DEPOT_PATH="/image/julia")
    assert found["R_LIBS_USER"] == f"{place(data)}/R:/image/R"
    assert (place(data) / "R").is_dir(), "R looks only into folders that are there"
    assert found["JULIA_DEPOT_PATH"] == f"{place(data)}/julia:/image/julia"
    assert found["CONDA_ENVS_PATH"] == f"{place(data)}/conda/envs"
    assert session.variables("data")["JULIA_DEPOT_PATH"] == f"{place(data)}/julia:"


def test_an_image_without_them_gets_only_what_kernels_need(session: Session) -> None:
    session.mount("data")
    found = session.variables("data", PYTHONPATH="/image/modules")
    assert found["PYTHONPATH"] == f"/image/modules:{TOOLKIT}/python"
    assert Path(found["JUPYTER_RUNTIME_DIR"]).stat().st_mode & 0o777 == 0o700
    assert not {"PYTHONUSERBASE", "R_LIBS_USER", "JULIA_DEPOT_PATH"} & set(found)
    assert "SLIPWAY_PYTHON" not in found


def test_a_python_that_is_no_virtual_environment_uses_the_users_own_place(session: Session) -> None:
    data = session.mount("data")
    (session.bin / "python3").symlink_to(sys.base_prefix + "/bin/python3")
    found = session.variables("data")
    assert found["PYTHONUSERBASE"] == f"{place(data)}/python"
    assert found["PIP_BREAK_SYSTEM_PACKAGES"] == "1"
    assert found["PATH"].startswith(f"{place(data)}/python/bin:")
    install(found["PYTHONUSERBASE"])
    assert session.does(found, "python3", "-c", "import mine").returncode == 0
    without = {**found, "PYTHONNOUSERSITE": "1"}  # JupyterLab's own
    assert session.does(without, "python3", "-c", "import mine").returncode == 1


def test_a_session_of_before_has_no_packages(tmp_path: Path) -> None:
    found = environment(None, str(tmp_path), "/opt/slipway", {"PATH": "/bin"})
    assert "SLIPWAY_PACKAGES" not in found
    assert found["PYTHONPATH"] == "/opt/slipway/python"
