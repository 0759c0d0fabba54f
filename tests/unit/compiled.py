"""What Jinja and Werkzeug compile for an application, once per process for those of all tests.

Each of thousands of tests makes an application of its own; compiling its templates and its 200
routes took longer than most tests themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Flask
from jinja2.bccache import Bucket, BytecodeCache
from werkzeug.routing import Rule

Builder = Callable[..., tuple[str, str]]


class CompiledTemplates(BytecodeCache):
    """Templates by their source."""

    def __init__(self) -> None:
        self._known: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Reuse the template compiled for an earlier application, unless its source has changed."""
        if bucket.key in self._known:
            bucket.bytecode_from_string(self._known[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep it for the next one."""
        self._known[bucket.key] = bucket.bytecode_to_string()


class CompiledRules:
    """The functions that build URLs; they find converters in the rule that they are bound to."""

    def __init__(self, compile_builder: Callable[[Rule, bool], Builder]) -> None:
        self._compile = compile_builder
        self._known: dict[tuple[object, ...], Builder] = {}

    def builder(self, rule: Rule, append_unknown: bool = True) -> Builder:
        """The function compiled for an equal rule of an earlier application, or a new one."""
        if rule.defaults:  # become parts of the function
            return self._compile(rule, append_unknown)
        trace: Any = rule._trace
        key = (*trace, append_unknown)
        if key not in self._known:
            self._known[key] = self._compile(rule, append_unknown)
        return self._known[key]


def compile_once() -> None:
    """Let the applications made from now on share what is compiled for them."""
    rules = CompiledRules(Rule._compile_builder)

    def shared(self: Rule, append_unknown: bool = True) -> Builder:
        return rules.builder(self, append_unknown)

    Flask.jinja_options = {"bytecode_cache": CompiledTemplates()}
    # Werkzeug has no public way to share them.
    Rule._compile_builder = shared  # type: ignore[method-assign]
