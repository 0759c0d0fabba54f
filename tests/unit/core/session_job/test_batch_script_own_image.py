"""The batch script of a session with an image of its owner's."""

from __future__ import annotations

import dataclasses
import re
import subprocess

import pytest

from portal.core.launch.own_image import ImageJob, OwnImageRules, image_job
from portal.core.session_job.batch_script import render_script
from tests.support.batch_scripts import GOLDEN, PLAIN, TEMPLATE

RULES = OwnImageRules(own="registries", registries=("*",), insecure=("plain.example.org:5000",))


def script(image: str) -> str:
    own = image_job("alice", image, RULES, "storage")
    return render_script(dataclasses.replace(PLAIN, image="@image", own_image=own), TEMPLATE)


def test_the_complete_script() -> None:
    """After an intended change render it again, review the difference, and commit both."""
    file = GOLDEN / "session-own-image.sh"
    assert script("images/mine.sif") == file.read_text(encoding="utf-8")
    subprocess.run(["bash", "-n", str(file)], check=True)


def test_a_reference_is_pulled_into_the_users_cache() -> None:
    text = script("docker://plain.example.org:5000/team/tool:1.2")
    assert "--reference docker://plain.example.org:5000/team/tool:1.2 \\" in text
    assert "--cache .slipway/images --cache-mb 40960 \\" in text
    assert "--insecure plain.example.org:5000 \\" in text
    assert "--insecure" not in script("docker://registry.example.org/team/tool:1.2")
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)


def test_it_has_the_binds_of_any_session_and_a_user_namespace() -> None:
    """Nothing else differs in what the container is started with."""
    own, plain = script("images/mine.sif"), render_script(PLAIN, TEMPLATE)
    options = [re.findall(r"^ +(--(?:home|bind|scratch) .*)$", text, re.M) for text in (own, plain)]
    assert options[0] == options[1]
    assert "apptainer --silent exec --userns --containall" in own
    assert "apptainer --silent exec --containall" in plain


@pytest.mark.parametrize("field", ["folder", "file", "reference", "command"])
@pytest.mark.parametrize("value", ["a b", "$(id)", "a;b", "a\n#SBATCH --uid=0", "'", "`id`"])
def test_no_shell_syntax_can_be_injected(field: str, value: str) -> None:
    own = image_job("alice", "images/mine.sif", RULES, "storage")
    wrong = ImageJob(**{**dataclasses.asdict(own), field: value})
    job = dataclasses.replace(PLAIN, own_image=wrong)
    with pytest.raises(ValueError, match="own_image"):
        render_script(job, TEMPLATE)
