"""However a program looks a function up, it finds the shim's."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.gres.clients import Client
from tests.unit.gres.conftest import MIB, ROOT, UUID, Shim, Standin, driver_before
from tests.unit.gres.lookups.wrapped import wrapped_functions

CAP = 1536 * MIB


@pytest.fixture
def session(standin: Standin, shim: Callable[..., Shim]) -> Shim:
    """A session with a slice of the only GPU."""
    made = shim()
    made.grant((UUID.format(0), CAP, 100))
    return made


@pytest.fixture(params=["COPY", "JUMPS"])
def other_addresses(
    request: pytest.FixtureRequest,
    standin: Standin,
    shim: Callable[..., Shim],
    tmp_path: Path,
) -> Iterator[Shim]:
    """A session on a driver whose look-up answers other addresses than it exports."""
    copy = tmp_path / "copy.so"
    shutil.copy(standin.cuda, copy)
    flags = [f'-DCOPY="{copy}"'] if request.param == "COPY" else []
    source = Path(__file__).with_name("other_addresses.c")
    made = shim("addresses")
    made.use_driver(driver_before(standin, tmp_path / "driver", source, *flags))
    made.grant((UUID.format(0), CAP, 100))
    yield made
    made.use_driver(standin.directory)


NAMES = """
    cuMemAlloc cuMemAllocPitch cuMemAllocManaged cuMemFree cuMemAllocAsync cuMemAllocFromPoolAsync
    cuMemFreeAsync cuMemCreate cuMemRelease cuMemMap cuMemUnmap cuArrayCreate cuArray3DCreate
    cuArrayDestroy cuMipmappedArrayCreate cuGraphInstantiate cuGraphLaunch cuMemGetInfo
    cuDeviceTotalMem cuLaunchKernel cuGetProcAddress cuCtxDestroy cuStreamSynchronize
""".split()


def questions(form: int) -> list[tuple[str, int, str, int, int]]:
    return [
        ("where", form, name, version, flags)
        for name in NAMES
        for version in (2000, 3020, 11020, 11030, 12000)
        for flags in (0, 1, 2)
    ]


@pytest.mark.parametrize("form", [4, 5])
def test_cudas_own_lookup_finds_the_shim_in_the_version_chosen_by_the_driver(
    form: int, client_program: Path, standin: Standin, session: Shim
) -> None:
    with (
        Client(client_program, standin.cuda) as real,
        Client(client_program, session.cuda) as client,
    ):
        for question in questions(form):
            _, symbol = real.ask(*question)
            if symbol == "none":
                assert client.ask(*question)[1] == "none"
                continue
            found, ours = client.ask(*question)
            assert (found, plain(ours)) == (str(session.cuda), plain(symbol)), question
        other = client.ask("where", form, "cuCtxGetDevice", 12000, 0)[0]
        assert Path(other).resolve() == standin.cuda.resolve()  # functions without a wrapper


NEWER = """
    static int newer(void) { return 0; }
    static int older(void) { return 1; }
    int cuGetProcAddress(const char *name, void **found, int version, unsigned long flags)
    {
        *found = version > 13050 ? newer : older;
        return 0;
    }
    int cuGetProcAddress_v2(const char *name, void **found, int version, unsigned long flags, int *)
    {
        return cuGetProcAddress(name, found, version, flags);
    }
"""


@pytest.mark.parametrize("form", [4, 5])
def test_a_version_unknown_to_the_shim_is_not_found(
    form: int, client_program: Path, standin: Standin, session: Shim, tmp_path: Path
) -> None:
    (tmp_path / "newer.c").write_text(NEWER)
    newer = tmp_path / "libcuda.so.1"
    subprocess.run(["gcc", "-shared", "-o", newer, tmp_path / "newer.c"], check=True)
    session.use_driver(tmp_path)
    try:
        with Client(client_program, session.cuda, begin=False) as client:
            assert client.ask("where", form, "cuMemAlloc", 99000, 0) == ["500", "none"]
            found = client.ask("where", form, "cuEventRecord", 99000, 0)[0]
            assert found == str(session.directory / "driver" / newer.name)
    finally:
        session.use_driver(standin.directory)


@pytest.mark.parametrize("form", [4, 5])
def test_a_driver_whose_look_up_answers_what_it_does_not_export(
    form: int, client_program: Path, standin: Standin, other_addresses: Shim
) -> None:
    """The function is recognised by the name at its address, or by its own name and version."""
    with (
        Client(client_program, standin.cuda) as real,
        Client(client_program, other_addresses.cuda) as client,
    ):
        for question in questions(form):
            _, symbol = real.ask(*question)
            found, ours = client.ask(*question)
            if symbol == "none" or (question[2] == "cuGraphInstantiate" and question[3] >= 11040):
                assert ours in ("none", symbol)  # there the parameters are not certain
            else:
                assert (found, plain(ours)) == (str(other_addresses.cuda), plain(symbol)), question
        assert client.ask("where", form, "cuCtxGetDevice", 12000, 0)[0] != str(other_addresses.cuda)
        assert client.ask("where", form, "cuMemFree", 14000, 0)[1] == "cuMemFree_v2"
        assert client.ask("where", form, "cuMemAlloc", 14000, 0) == ["500", "none"]


def test_every_form_of_a_wrapped_function_is_in_the_table_of_versions(tmp_path: Path) -> None:
    table = (ROOT / "gres" / "shim" / "cuda_versions.c").read_text()
    wrapped = wrapped_functions(tmp_path)
    several = {name for name in wrapped if re.search(r"_v\d+$", name)}
    several |= {re.sub(r"_v\d+$", "", name) for name in several} & wrapped
    assert len(several) > 20
    assert [name for name in sorted(several) if f'"{name}"}}' not in table] == []


def plain(symbol: str) -> str:
    """In the stand-in, per-thread stream functions are the same as the others."""
    return symbol.removesuffix("_ptsz")


def test_a_program_that_is_linked_to_libcuda_finds_the_shim(
    tmp_path: Path, session: Shim, standin: Standin
) -> None:
    source, program = tmp_path / "linked.c", tmp_path / "linked"
    source.write_text(
        """
        #include <stddef.h>
        int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
        int cuMemGetInfo_v2(size_t *, size_t *);
        int main(void)
        {
            void *context;
            size_t left, total;
            return cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
                   cuMemGetInfo_v2(&left, &total) || total != BYTES;
        }
        """.replace("BYTES", f"{CAP}u")
    )
    subprocess.run(["gcc", "-o", program, source, standin.cuda], check=True)
    environment = {"LD_LIBRARY_PATH": str(session.libraries)}
    assert subprocess.run([program], env=environment, check=False).returncode == 0
