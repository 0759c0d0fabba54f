"""The shim can be loaded in old images, and otherwise its build fails."""

from __future__ import annotations

import subprocess
from pathlib import Path

SHIM = Path(__file__).parents[3] / "gres" / "shim"


def build(folder: Path, code: str, *options: str) -> Path:
    """A library with this code."""
    library = folder / "libtest.so"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-O2", *options, "-x", "c", "-", "-o", str(library)],
        input=code,
        text=True,
        check=True,
    )
    return library


def complaint(library: Path) -> str:
    """The output of check_glibc.sh; "" if the library passes."""
    command = ["sh", str(SHIM / "check_glibc.sh"), str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (not done.stderr)
    return done.stderr


def test_old_versions_of_reversioned_functions_are_used(tmp_path: Path) -> None:
    code = """
        #include <dlfcn.h>
        #include <fcntl.h>
        #include <pthread.h>
        #include <stdlib.h>
        #include <sys/stat.h>
        pthread_once_t once; void first(void); void first(void) {}
        long test(const char *name) {
            struct stat found; pthread_key_t key; struct flock area = {0};
            pthread_once(&once, first);
            pthread_key_create(&key, free);
            fcntl(fstat(1, &found), F_SETLK, &area);
            return stat(name, &found) + found.st_size + strtol(name, 0, 10) + (dlsym(0, name) != 0);
        }
    """
    assert complaint(build(tmp_path, code, "-include", str(SHIM / "glibc_compat.h"))) == ""


def test_a_newer_function_fails_the_build(tmp_path: Path) -> None:
    code = "#include <sys/random.h>\nint test(char *out) { return getrandom(out, 1, 0); }"
    assert "getrandom@GLIBC_2.25" in complaint(build(tmp_path, code))


def test_a_search_path_or_another_library_fails_the_build(tmp_path: Path) -> None:
    code = "#include <stdlib.h>\nvoid test(void) { abort(); }"
    assert "search path" in complaint(build(tmp_path, code, "-Wl,-rpath,/opt/slipway/lib"))
    assert "may lack" in complaint(build(tmp_path, code, "-Wl,--no-as-needed", "-lm"))
