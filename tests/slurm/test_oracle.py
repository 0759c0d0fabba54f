"""Random jobs in an image whose user land is the node's: nothing tells them from sbatch's own.

`python -m tests.oracle 500` runs more of them, with another seed each time.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.oracle.__main__ import report
from tests.oracle.cases import generate
from tests.oracle.comparing import unexplained
from tests.oracle.running import BATCH, Oracle
from tests.support.cluster import Cluster

SEED = 20261126
CASES = 30


@pytest.fixture(scope="module")
def oracle(cluster: Cluster) -> Iterator[Oracle]:
    """The image and a folder for jobs."""
    found = Oracle(cluster)
    found.make_image()
    yield found
    found.clean()


@pytest.mark.timeout(900)  # the first one builds the image as well
@pytest.mark.parametrize("first", range(0, CASES, BATCH))
def test_random_jobs_do_what_they_do_with_sbatch(first: int, oracle: Oracle) -> None:
    cases = [generate(SEED, number) for number in range(first, first + BATCH)]
    differences = oracle.run(cases)
    texts = [report(case, new) for case in cases if (new := unexplained(differences[case.number]))]
    assert not texts, "\n".join(texts)
