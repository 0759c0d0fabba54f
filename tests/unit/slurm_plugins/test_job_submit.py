"""job_submit.lua in Slurm's own Lua (5.1): jobs that are refused, and fields that are completed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "slurm_plugins" / "job_submit.lua"
ONE = 'return {{name = "standin8g", shards = 4, least = 2}}'
TWO = 'return {{name = "a100", shards = 8, least = 1}, {name = "h100", shards = 0, least = 0}}'

HARNESS = """
slurm = {{SUCCESS = 0, ERROR = -1, NO_VAL16 = 65534}}
function slurm.log_user(form, ...) print("USER " .. string.format(form, ...)) end
function slurm.log_error(form, ...) print("LOG " .. string.format(form, ...)) end
SLIPWAY_KINDS_FILE = "{kinds}"
dofile("{script}")
local job = {{{job}}}
local answer = {call}
print(answer, job.tres_per_node, job.min_nodes, job.max_nodes)
"""


def submit(
    tmp_path: Path, job: str, kinds: str = ONE, call: str = "slurm_job_submit(job, {}, 1001)"
) -> list[str]:
    """The return code and messages to the user."""
    file = tmp_path / "kinds.lua"
    file.write_text(kinds)
    text = HARNESS.format(kinds=file, script=SCRIPT, job=job, call=call)
    run = ["lua5.1", "-"]
    return subprocess.run(
        run, input=text, capture_output=True, text=True, check=True
    ).stdout.splitlines()


@pytest.mark.parametrize(
    ("job", "kinds", "words"),
    [
        ('tres_per_node = "gres/shard:5"', ONE, "One GPU has 4 shards, and you asked for 5."),
        ('tres_per_node = "gres:shard:5"', ONE, "One GPU has 4 shards, and you asked for 5."),
        ('tres_per_node = "gres/shard:p100:1"', TWO, "There are no GPUs of the kind p100 here."),
        ('tres_per_node = "gres/shard:1"', TWO, "KIND one of a100, h100"),
        (
            'tres_per_node = "gres/shard:h100:1"',
            TWO,
            "are given whole. Ask for one: --gres=gpu:h100:1",
        ),
        ('tres_per_node = "gres/gpu:1,gres/shard:1"', ONE, "not both"),
        ('tres_per_node = "gres/shard:1", tres_per_job = "gres/gpu:1"', ONE, "not both"),
        ('tres_per_node = "gres/shard:a:1,gres/shard:b:1"', ONE, "one kind of GPU only"),
        ('tres_per_job = "gres/shard:1"', ONE, "not per job, socket or task"),
        ('tres_per_task = "gres/shard:1"', ONE, "not per job, socket or task"),
        ('tres_per_node = "gres/shard:1", min_nodes = 2', ONE, "you asked for 2 nodes"),
    ],
)
def test_impossible_requests_are_refused_with_an_explanation(
    tmp_path: Path, job: str, kinds: str, words: str
) -> None:
    message, answer = submit(tmp_path, job, kinds)
    assert message.startswith("USER ")
    assert words in message
    assert answer.startswith("-1\t")
    changed = submit(tmp_path, job, kinds, "slurm_job_modify(job, {}, {}, 1001)")
    assert changed[0] == message


@pytest.mark.parametrize(
    ("job", "answer"),
    [
        # The smallest amount offered, on one node.
        ('tres_per_node = "gres/shard"', "0\tgres/shard:2\t1\t1"),
        ('tres_per_node = "gres/shard:standin8g"', "0\tgres/shard:standin8g:2\t1\t1"),
        ('tres_per_node = "gres/shard:3", min_nodes = 4294967294', "0\tgres/shard:3\t1\t1"),
        ('tres_per_node = "gres/shard:1,gres/tmp:5"', "0\tgres/shard:1,gres/tmp:5\t1\t1"),
        # Without our GRES.
        ('tres_per_node = "gres/gpu:a100:8", min_nodes = 2', "0\tgres/gpu:a100:8\t2\tnil"),
        ("min_nodes = 4", "0\tnil\t4\tnil"),
    ],
)
def test_valid_requests_are_completed_and_others_unchanged(
    tmp_path: Path, job: str, answer: str
) -> None:
    assert submit(tmp_path, job) == [answer]


def test_without_a_table_any_number_passes(tmp_path: Path) -> None:
    job = 'tres_per_node = "gres/shard:p100:99"'
    assert submit(tmp_path, job, "return 1")[0].startswith("LOG ")
    assert submit(tmp_path, job, "syntax error") == ["0\tgres/shard:p100:99\t1\t1"]
