"""Request model of resource templates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from portal.core.launch.request import Resources
from portal.core.launch.templates import Description, Place, Template, Title
from portal.core.slurm_options import Constraint, GroupName, SlurmName
from portal.core.units import TimeLimit
from portal.core.validation import (
    STRICT,
    WORD,
    WORD_RULE,
    check,
)
from portal.errors import FieldError, InvalidRequest


class TemplateRequest(BaseModel):
    """A template as administrators write it; `resources` as in a launch request."""

    model_config = STRICT

    title: Title
    description: Description = ""
    resources: Resources
    time_limit: TimeLimit | None = None
    resource_group: GroupName | None = None
    account: SlurmName | None = None
    qos: SlurmName | None = None
    reservation: SlurmName | None = None
    constraint: Constraint | None = None
    exclusive: bool = False
    """The whole node."""
    place: Place | None = None
    """None: an existing template keeps its place, a new one comes last."""

    def named(self, name: str, place: int) -> Template:
        """The template to store."""
        return Template(
            name=name,
            cpus=self.resources.cpus,
            memory_mb=self.resources.memory,
            shared_memory_mb=self.resources.shared_memory,
            fgpu=self.resources.fgpu,
            gpu_kind=self.resources.gpu_kind,
            **self.model_dump(exclude={"resources", "place"}),
            place=place,
        )


def name_problems(name: str) -> list[FieldError]:
    """Errors for a template's name, which is part of its URL."""
    return [] if re.fullmatch(WORD, name, re.ASCII) else [FieldError("name", WORD_RULE)]


def parse_template(name: str, data: Mapping[str, Any]) -> TemplateRequest:
    """Validate a template and its name; raises InvalidRequest that names the wrong fields."""
    problems = name_problems(name)
    try:
        request = check(TemplateRequest, data)
    except InvalidRequest as error:
        raise error.also(problems) from None
    if problems:
        raise InvalidRequest(problems)
    return request
