"""What is inside an image."""

from __future__ import annotations

from portal.core.images.inventory import (
    Contents,
    Package,
    alpine_packages,
    debian_packages,
    file_name,
    inventory_name,
    labels,
    metadata,
    python_packages,
    red_hat_packages,
    system_name,
)

STATUS = """Package: bash
Status: install ok installed
Version: 5.2.37-2
Description: shell
 Package: not this one

Package: gone
Status: deinstall ok config-files
Version: 1
"""


def test_installed_packages_are_read() -> None:
    assert debian_packages(STATUS) == [Package("deb", "bash", "5.2.37-2")]
    assert alpine_packages("C:x\nP:musl\nV:1.2.5-r0\n\n") == [Package("apk", "musl", "1.2.5-r0")]
    assert red_hat_packages("bash 5.2-1.el9\nbroken\n") == [Package("rpm", "bash", "5.2-1.el9")]
    folders = [
        "numpy-2.3.1.dist-info",
        "numpy-2.3.1.dist-info",
        "numpy",
        "typing_extensions-4.dist-info",
    ]
    assert python_packages(folders) == [
        Package("pip", "numpy", "2.3.1"),
        Package("pip", "typing-extensions", "4"),
    ]
    assert debian_packages("") == alpine_packages("") == red_hat_packages("") == []


def test_the_distributions_name() -> None:
    assert system_name('ID=debian\nPRETTY_NAME="Debian GNU/Linux 13 (trixie)"\n') == (
        "Debian GNU/Linux 13 (trixie)"
    )
    assert system_name("") == ""


def test_labels_keep_the_definitions_own_and_no_time() -> None:
    contents = Contents(
        environment="r", version="4.5", title="R 4.5", sources="ab", origin="Debian trixie"
    )
    prefix = "org.label-schema."
    found = labels(
        contents,
        {
            "Author": "me",
            f"{prefix}build-date": "Monday",
            f"{prefix}usage.singularity.deffile.from": "/var/tmp/x/base",
        },
    )
    assert found["Author"] == "me"
    assert found["slipway.sources"] == "ab"
    assert found["org.opencontainers.image.title"] == "R 4.5"
    assert not any("Monday" in value or "/var/tmp" in value for value in found.values())


def test_what_apptainer_inspect_shows() -> None:
    scripts = {"env/90-environment.sh": "export A=b", "runscript": "run", "test": ""}
    attributes = {
        "labels": {"a": "b"},
        "deffile": "Bootstrap: scratch",
        "environment": {"/.singularity.d/env/90-environment.sh": "export A=b"},
        "runscript": "run",
    }
    assert metadata({"a": "b"}, "Bootstrap: scratch", scripts) == {
        "data": {"attributes": attributes},
        "type": "container",
    }


def test_files_are_named_by_their_content() -> None:
    assert file_name("0123456789abcdef" + "0" * 48) == "image-0123456789abcdef.sif"
    assert inventory_name("image-0123456789abcdef.sif") == "image-0123456789abcdef.json"
