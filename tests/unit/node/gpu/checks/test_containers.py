"""The check of Apptainer's configuration."""

from __future__ import annotations

from pathlib import Path

from portal.node.gpu.checks import Finding
from portal.node.gpu.checks.containers import LIBRARIES, check_apptainer

INSTALLED = "".join(f"\t{name}.1 (libc6,x86-64) => /usr/lib/{name}.1\n" for name in LIBRARIES)
OLD = "# put libs here\nlibcuda.so\nlibnvidia-ml.so\nlibnvidia-ptxjitcompiler.so\n"


def _found(folder: Path, libraries: str, cache: str, conf: str = "") -> list[Finding]:
    (folder / "apptainer.conf").write_text(conf or "# use nvidia-container-cli = yes\n")
    (folder / "nvliblist.conf").write_text(libraries)
    return list(check_apptainer([folder / "none", folder], cache))


def test_a_complete_list(tmp_path: Path) -> None:
    ((mark, _),) = _found(tmp_path, "\n".join(LIBRARIES), INSTALLED)
    assert mark == "ok"
    ((mark, _),) = _found(tmp_path, OLD, "\tlibcuda.so.1 => /usr/lib/libcuda.so.1\n")
    assert mark == "ok"  # what is not installed is not missed


def test_libraries_that_sessions_would_lack(tmp_path: Path) -> None:
    found = _found(tmp_path, OLD, INSTALLED)
    assert {mark for mark, _ in found} == {"note"}
    texts = "\n".join(text for _, text in found)
    for name in ("libcudadebugger.so", "libnvidia-nvvm70.so", "libnvidia-gpucomp.so"):
        assert f"lacks {name}, which is installed here" in texts
    ((mark, text),) = _found(tmp_path, "libnvidia-ml.so\n", "\tlibcuda.so.1 => /libcuda.so.1\n")
    assert (mark, "libcuda.so" in text) == ("wrong", True)
    ((mark, _),) = _found(tmp_path, "# none\n", INSTALLED)
    assert mark == "wrong"


def test_the_other_way_to_get_libraries_is_refused(tmp_path: Path) -> None:
    conf = "# comment\nuse nvidia-container-cli = yes\n"
    (mark, text), _ = _found(tmp_path, "\n".join(LIBRARIES), INSTALLED, conf)
    assert mark == "wrong"
    assert "set it to no" in text


def test_no_apptainer(tmp_path: Path) -> None:
    ((mark, text),) = check_apptainer([tmp_path])
    assert mark == "note"
    assert "was not checked" in text
