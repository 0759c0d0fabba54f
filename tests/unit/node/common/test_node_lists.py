"""Slurm's short lists of nodes."""

from __future__ import annotations

import pytest

from portal.node.common.node_lists import expand_nodes


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("", ()),
        ("n1", ("n1",)),
        ("n[1-3,07],login1", ("n1", "n2", "n3", "n07", "login1")),
        ("gpu[08-10]-ib", ("gpu08-ib", "gpu09-ib", "gpu10-ib")),
        ("r[1-2]n[03-04]", ("r1n03", "r1n04", "r2n03", "r2n04")),
        ("n1,r[1]n[3,5]-i[0-1],n2", ("n1", "r1n3-i0", "r1n3-i1", "r1n5-i0", "r1n5-i1", "n2")),
        ("gpu[01-03,07]-ib,login", ("gpu01-ib", "gpu02-ib", "gpu03-ib", "gpu07-ib", "login")),
        ("r[1-2]n[09-10]", ("r1n09", "r1n10", "r2n09", "r2n10")),
        ("a[1-2],b[3]x,c.example.net", ("a1", "a2", "b3x", "c.example.net")),
    ],
)
def test_node_lists(text: str, nodes: tuple[str, ...]) -> None:
    assert expand_nodes(text) == nodes


@pytest.mark.parametrize(
    "text",
    [
        "n[1-3",
        "n1-3]",
        "n[]",
        "n[a-c]",
        "n[3-1]",
        "n[1-2-3]",
        "n[1,]",
        "n[-1]",
        "n1,",
        "[1-3]",
        "n1 n2",
        "n[1-[2]]",
    ],
)
def test_an_unknown_node_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="node list"):
        expand_nodes(text)


@pytest.mark.parametrize(
    "text",
    ["n[1-999999999]", "r[1-1000]n[1-1000]", "a[1-60000],b[1-60000]", "n" + "[1-9]" * 3000],
)
def test_more_nodes_than_any_cluster_has_are_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError, match="node list"):
        expand_nodes(text)
