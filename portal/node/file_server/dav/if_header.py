"""The header If of WebDAV (RFC 4918, 10.4): conditions on lock tokens and entity tags."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from portal.node.file_server.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    State = Callable[[str], tuple[Collection[str], str]]
    """Gives the lock tokens of a resource and its entity tag, by its address."""

_WORD = re.compile(r'[ \t]*(\(|\)|not\b|<[^<>\s]*>|\[(?:W/)?"[^"\]]*"\])', re.IGNORECASE)


@dataclass(frozen=True)
class _Condition:
    word: str
    """`<token>` or `["tag"]`."""
    is_negated: bool

    def holds(self, tokens: Collection[str], tag: str) -> bool:
        value = self.word[1:-1]
        return (value in tokens if self.word[0] == "<" else value == tag) != self.is_negated


@dataclass
class Conditions:
    """Lists of conditions; one list whose conditions all hold is enough."""

    lists: list[tuple[str, list[_Condition]]] = field(default_factory=list)
    """Each with the address of its resource; "" for that of the request."""

    @property
    def tokens(self) -> set[str]:
        """All tokens that were sent; it does not matter where."""
        words = (each.word for _, conditions in self.lists for each in conditions)
        return {word[1:-1] for word in words if word[0] == "<"}

    def hold(self, state: State) -> bool:
        """Whether they hold, which they do if there are none."""
        return not self.lists or any(
            all(condition.holds(*state(resource)) for condition in conditions)
            for resource, conditions in self.lists
        )


def parse(text: str) -> Conditions:
    """Parse the header; raises Refused (400)."""
    conditions = Conditions()
    resource = ""
    words = _words(text)
    for word in words:
        if word[0] == "<" and (resource or not conditions.lists):
            resource = word[1:-1]
        elif word == "(":
            conditions.lists.append((resource, _list(words)))
        else:
            raise _malformed()
    if (text and not conditions.lists) or (resource and resource != conditions.lists[-1][0]):
        raise _malformed()
    return conditions


def _words(text: str) -> Iterator[str]:
    position, text = 0, text.rstrip(" \t")
    while position < len(text):
        match = _WORD.match(text, position)
        if match is None:
            raise _malformed()
        yield match[1]
        position = match.end()


def _list(words: Iterator[str]) -> list[_Condition]:
    """The conditions up to the closing parenthesis; at least one."""
    conditions: list[_Condition] = []
    is_negated = False
    for word in words:
        if word == ")" and conditions and not is_negated:
            return conditions
        if word.lower() == "not" and not is_negated:
            is_negated = True
        elif word[0] in "<[":
            conditions.append(_Condition(word, is_negated))
            is_negated = False
        else:
            break
    raise _malformed()


def _malformed() -> Refused:
    return Refused(400, "value", "This is not a list of conditions as in RFC 4918, 10.4.", "If")
