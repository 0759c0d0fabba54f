"""The summary of a run: why tests failed, and what the kernel killed meanwhile."""

from __future__ import annotations

from xml.etree.ElementTree import fromstring

from tests.results import failed, repeated
from tests.support.kernel_log import memory_kills

LOG = """\
[  665.164816] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=task_0
[  665.164863] Memory cgroup out of memory: Killed process 20349 (python3) total-vm:1730240kB
[  702.000001] Out of memory: Killed process 7 (jupyter-lab) total-vm:1kB
"""

SUITE = """<testsuite><testcase classname="tests.slurm.test_a" name="test_b">
<properties><property name="first failure" value="Lost: the\n connection"/>
<property name="killed in attempt 1" value="jupyter-lab (job)"/></properties>
<failure message="Closed: it has stopped"/></testcase>
<testcase classname="tests.slurm.test_a" name="test_c"/>
<testcase classname="tests.attack.test_a" name="test_d">
<properties><property name="killed in attempt 1" value="R (job), R (machine)"/></properties>
<error message="no answer"/></testcase></testsuite>"""


def test_kills_are_named_with_who_was_full() -> None:
    assert memory_kills(600, LOG) == ["python3 (job)", "jupyter-lab (machine)"]
    assert memory_kills(666, LOG) == ["python3 (job)", "jupyter-lab (machine)"]
    assert memory_kills(700, LOG) == ["jupyter-lab (machine)"]
    assert memory_kills(710, LOG) == []


def test_both_attempts_say_why_they_failed() -> None:
    suite = fromstring(SUITE)
    assert failed(suite) == [
        "tests.slurm.test_a::test_b (failure) Closed: it has stopped",
        "tests.attack.test_a::test_d (error) no answer [killed for memory: R (job), R (machine)]",
    ]
    assert repeated(suite) == [
        "tests.slurm.test_a::test_b Lost: the connection [killed for memory: jupyter-lab (job)]"
    ]
