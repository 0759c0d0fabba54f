"""Expressions of features."""

from __future__ import annotations

import pytest

from portal.core.cluster.choice.constraint import features_in, satisfiable

NODES = [frozenset({"skylake", "ssd"}), frozenset({"zen4"})]


@pytest.mark.parametrize(
    ("expression", "possible"),
    [
        ("zen4", True),
        ("cray", False),
        ("skylake&ssd", True),
        ("zen4&ssd", False),
        ("zen4|cray", True),
        ("[cray|zen4]", True),
        ("(cray|skylake)&ssd", True),
        ("(cray|zen4)&ssd", False),
        ("zen4*1", True),
        ("zen4*2", False),
        ("[skylake*1&ssd*1]", False),
        ("!zen4", True),  # not understood: left to Slurm
        ("(zen4", True),
    ],
)
def test_one_node_must_satisfy_the_whole_expression(expression: str, possible: bool) -> None:
    assert satisfiable(expression, NODES) is possible


def test_the_features_that_an_expression_names() -> None:
    assert features_in("[rack1|rack-2]&(ssd&gpu:a100*4)") == ["rack1", "rack-2", "ssd", "gpu:a100"]
