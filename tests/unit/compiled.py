"""What Jinja and Werkzeug compile for an application, once per process for those of all tests.

Each of thousands of tests makes an application of its own; compiling its templates and its 200
routes took longer than most tests themselves.
"""

from __future__ import annotations

from typing import Any

from flask import Flask
from jinja2.bccache import Bucket, BytecodeCache
from werkzeug.routing import Rule


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


def share_compiled_rules() -> None:
    """Let a rule take what an equal rule of an earlier application was compiled to.

    That is its parts, its converters and the functions that build its URL. They read nothing of the
    map that they were made for but its settings, which are the same for all.
    """
    compile_rule = Rule.compile
    attributes = ("_parts", "_trace", "_converters", "arguments", "_build", "_build_unknown")
    compiled: dict[tuple[object, ...], dict[str, Any]] = {}

    def compile_once(self: Rule) -> None:
        key = (self.rule, self.host, self.subdomain, self.is_leaf, self.merge_slashes)
        if self.defaults:  # become parts of the functions
            compile_rule(self)
        elif key in compiled:
            self.__dict__.update(compiled[key])
        else:
            compile_rule(self)
            compiled[key] = {name: getattr(self, name) for name in attributes}

    # Werkzeug has no public way to share them.
    Rule.compile = compile_once  # type: ignore[method-assign]


def compile_once() -> None:
    """Let the applications made from now on share what is compiled for them."""
    Flask.jinja_options = {"bytecode_cache": CompiledTemplates()}
    share_compiled_rules()
