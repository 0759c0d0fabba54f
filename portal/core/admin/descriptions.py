"""One-line descriptions of administrators' settings for the audit log."""

from __future__ import annotations

from portal.core.admin.images import NAMING, ImageRule
from portal.core.launch.templates import Template
from portal.core.site_rules import SiteRules
from portal.core.units import exact_size, format_cores, format_fgpu


def describe_template(template: Template) -> str:
    """A template's resources in one line."""
    parts = [format_cores(template.cpus), exact_size(template.memory_mb)]
    if template.shared_memory_mb is not None:
        parts.append(f"shared memory {exact_size(template.shared_memory_mb)}")
    if template.fgpu is not None:
        parts.append(f"{format_fgpu(template.fgpu)} {template.gpu_kind or ''}".rstrip())
    if template.time_limit is not None:
        parts.append(f"{template.time_limit} minutes")
    if template.resource_group is not None:
        parts.append(f"group {template.resource_group}")
    for name in ("account", "qos", "reservation", "constraint"):
        if value := getattr(template, name):
            parts.append(f"{name} {value}")
    if template.exclusive:
        parts.append("whole node")
    return f"{template.title}: {', '.join(parts)}"


def describe_rule(rule: ImageRule) -> str:
    """Describe in one line which users see an image."""
    if rule.seen_by not in NAMING:
        return rule.seen_by
    parts = [("accounts", rule.accounts), ("users", rule.users)]
    principals = "; ".join(f"{word} {', '.join(names)}" for word, names in parts if names)
    return f"everybody except {principals}" if rule.seen_by == "except" else principals


def say_rule(title: str, rule: ImageRule) -> str:
    """Describe which users see an image: "BusyBox 1.37 is now seen by alice"."""
    if rule.seen_by not in NAMING:
        return f"{title} is now seen by {rule.seen_by}"
    accounts = [f"account {name}" for name in rule.accounts]
    *others, last = [*accounts, *rule.users]
    names = f"{', '.join(others)} and {last}" if others else last
    return f"{title} is now seen by {'everybody except ' * (rule.seen_by == 'except')}{names}"


def describe_caps(rules: SiteRules) -> str:
    """The caps, in one line."""
    cap = rules.max_shared_memory_mb
    parts = [f"shared memory at most {exact_size(cap)}" if cap else "no cap on shared memory"]
    if rules.idle_minutes is not None:
        warned = f"warned {rules.idle_warning} before, " if rules.idle_warning else ""
        parts.append(
            f"unused sessions end after {rules.idle_minutes} minutes "
            f"({warned}busy from {rules.idle_cpu_percent} % of a core)"
        )
    if not rules.public_apps:
        parts.append("no public apps")
    if not rules.preferred_ports:
        parts.append("no preferred ports")
    return ", ".join(parts)
