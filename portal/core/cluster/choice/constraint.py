"""Whether a node can satisfy an expression of features, as in sbatch's --constraint."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

_TOKEN = re.compile(r"[\w.:+-]+|[&|*()\[\]]")


_SIGNS = frozenset("&|*)]")
_ALL_SIGNS = _SIGNS | frozenset("([")


class _Unclear(Exception):
    """The expression is not one that this module understands; Slurm decides."""


def features_in(expression: str) -> list[str]:
    """The features that an expression names."""
    return [
        token
        for before, token in pairwise(["", *_TOKEN.findall(expression)])
        if token not in _ALL_SIGNS and before != "*"
    ]


def satisfiable(expression: str, nodes: Iterable[frozenset[str]]) -> bool:
    """Whether one of these nodes has the features of an expression.

    A session has one node, so a feature that several nodes must have cannot be satisfied. True for
    an expression that is not understood: Slurm decides.
    """
    tokens = _TOKEN.findall(expression)
    if "".join(tokens) != expression:
        return True
    try:
        return any(_Reading(tokens, features).whole() for features in nodes)
    except _Unclear:
        return True


class _Reading:
    """Evaluates an expression for one node, from left to right as Slurm does."""

    def __init__(self, tokens: list[str], features: frozenset[str]) -> None:
        self._rest = list(reversed(tokens))
        self._features = features

    def whole(self) -> bool:
        """The value of the whole expression."""
        value = self._joined()
        if self._rest:
            raise _Unclear
        return value

    def _joined(self) -> bool:
        value, counted = self._one()
        while self._rest and self._rest[-1] in "&|":
            operator = self._rest.pop()
            other, also_counted = self._one()
            if operator == "|":
                value, counted = value or other, counted or also_counted
            else:
                # Features with counts that are joined by & are on different nodes.
                value = value and other and not (counted and also_counted)
                counted = counted or also_counted
        return value

    def _one(self) -> tuple[bool, bool]:
        """The value of the next term, and whether it says on how many nodes."""
        token = self._rest.pop() if self._rest else ""
        if token in ("(", "["):
            value = self._joined()
            if not self._rest or self._rest.pop() != {"(": ")", "[": "]"}[token]:
                raise _Unclear
        elif token and token not in _SIGNS:
            value = token in self._features
        else:
            raise _Unclear
        if not (self._rest and self._rest[-1] == "*"):
            return value, False
        self._rest.pop()
        number = self._rest.pop() if self._rest else ""
        if not number.isdecimal():
            raise _Unclear
        return value and int(number) <= 1, True
