"""Whether a node can satisfy an expression of features, as in sbatch's --constraint."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

_TOKEN = re.compile(r"[\w.:+-]+|[&|*()\[\]]")


_SIGNS = frozenset("&|*)]")
_ALL_SIGNS = _SIGNS | frozenset("([")


class _NotUnderstood(Exception):
    """This module does not understand the expression; Slurm decides."""


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
    an expression that this module does not understand: Slurm decides.
    """
    tokens = _TOKEN.findall(expression)
    if "".join(tokens) != expression:
        return True
    try:
        return any(_Evaluation(tokens, features).value() for features in nodes)
    except _NotUnderstood:
        return True


class _Evaluation:
    """Evaluates an expression for one node, from left to right as Slurm does."""

    def __init__(self, tokens: list[str], features: frozenset[str]) -> None:
        self._tokens = list(reversed(tokens))
        self._features = features

    def value(self) -> bool:
        """The value of the whole expression."""
        value = self._expression()
        if self._tokens:
            raise _NotUnderstood
        return value

    def _expression(self) -> bool:
        value, counted = self._term()
        while self._tokens and self._tokens[-1] in "&|":
            operator = self._tokens.pop()
            other, also_counted = self._term()
            if operator == "|":
                value, counted = value or other, counted or also_counted
            else:
                # Features with counts that are joined by & are on different nodes.
                value = value and other and not (counted and also_counted)
                counted = counted or also_counted
        return value

    def _term(self) -> tuple[bool, bool]:
        """The value of the next term, and whether it has a number of nodes (`feature*2`)."""
        token = self._tokens.pop() if self._tokens else ""
        if token in ("(", "["):
            value = self._expression()
            if not self._tokens or self._tokens.pop() != {"(": ")", "[": "]"}[token]:
                raise _NotUnderstood
        elif token and token not in _SIGNS:
            value = token in self._features
        else:
            raise _NotUnderstood
        if not (self._tokens and self._tokens[-1] == "*"):
            return value, False
        self._tokens.pop()
        number = self._tokens.pop() if self._tokens else ""
        if not number.isdecimal():
            raise _NotUnderstood
        return value and int(number) <= 1, True
