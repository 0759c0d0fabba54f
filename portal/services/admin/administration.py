"""The administrators' settings beyond Slurm's limits, and the audit log."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta

from portal.core.admin.audit import MAX_DETAIL, MAX_EXPORT, AuditEvent, AuditFilter
from portal.core.admin.caps import CapsRequest
from portal.core.admin.descriptions import describe_caps, describe_rule, describe_template
from portal.core.admin.images import (
    NAMING,
    ImageRequest,
    ImageRule,
    check_principals,
    image_rule,
    refused_files,
)
from portal.core.admin.site_settings import SiteSettings
from portal.core.admin.templates import TemplateRequest, name_problems
from portal.core.apps.catalog import Catalog, Image
from portal.core.auth.person import Person
from portal.core.cluster.limit_report import LimitReport, limit_report
from portal.core.cluster.limits import Limits
from portal.core.cluster.node_list import NodePage, NodeQuery, NodeSummary
from portal.core.interfaces.systems import Clock
from portal.core.launch.site_files import RefusedFile
from portal.core.launch.templates import Template
from portal.core.site_rules import SiteRules
from portal.core.validation import names_of
from portal.errors import DatabaseUnavailable, FieldError, InvalidRequest, NotFound
from portal.store.administration import AdministrationStore
from portal.store.status import StatusStore

log = logging.getLogger(__name__)

_PIECE = 500
"""Events read at once for an export."""

caller_address: ContextVar[str] = ContextVar("caller_address", default="")
"""Client address of the current request, set by the web layer; "" elsewhere."""


@contextmanager
def called_from(address: str) -> Iterator[None]:
    """Record events of a request that a background thread completes with the request's address."""
    token = caller_address.set(address)
    try:
        yield
    finally:
        caller_address.reset(token)


class Administration:
    """Templates, image visibility, caps and the audit log.

    Methods reserved for administrators raise NotFound for other users, so that the existence of
    their data is not disclosed.
    """

    def __init__(
        self, store: AdministrationStore, status: StatusStore, clock: Clock, journal_days: int = 365
    ) -> None:
        self._store = store
        self._status = status
        self._clock = clock
        self._keep = timedelta(days=journal_days)

    @staticmethod
    def admit(person: Person) -> None:
        """Raise NotFound unless the user is an administrator."""
        if not person.admin:
            raise NotFound("There is nothing here, or it is not yours.")

    def site_settings(self) -> SiteSettings:
        """The settings that decide about requests, in one transaction."""
        return self._store.site_settings()

    # Templates

    def templates(self) -> list[Template]:
        """The resource templates in their order; readable by all users."""
        return self._store.templates()

    def template(self, person: Person, name: str) -> Template:
        """One template, for an administrator; raises NotFound."""
        self.admit(person)
        template = next((t for t in self._store.templates() if t.name == name), None)
        if template is None:
            raise NotFound("There is no such template.")
        return template

    def save_template(
        self, person: Person, name: str, request: TemplateRequest, etag: str | None = None
    ) -> Template:
        """Create or replace a template; raises InvalidRequest, or Conflict on concurrent changes.

        `etag` is that of the edited version, "" for a new one; None: the last write wins.
        """
        self.admit(person)
        if problems := name_problems(name):
            raise InvalidRequest(problems)
        self._check_group(request.resource_group)
        self._check_options(request)

        def change(before: Template | None, last: int) -> tuple[Template, AuditEvent]:
            if etag == "" and before is not None:
                text = "there is a template of this name already"
                raise InvalidRequest([FieldError("name", text)])
            position = (
                request.place if request.place is not None else before.place if before else last
            )
            template = request.named(name, position)
            action = "template.change" if before else "template.make"
            old = describe_template(before) if before else None
            detail = _changed(describe_template(template), old)
            return template, self._entry(person, action, name, detail)

        return self._store.save_template(name, etag, change)

    def _check_group(self, group: str | None) -> None:
        names = [p.name for p in self._status.reported().partitions]
        if group is not None and names and group not in names:
            text = f"choose one of: {names_of(names)}"
            raise InvalidRequest([FieldError("resource_group", text)])

    def option_names(self) -> dict[str, list[str]]:
        """The values that templates may set for Slurm's own options; empty where none are known."""
        limits = self._status.reported().limits or Limits()
        return {
            "account": sorted({association.account for association in limits.associations}),
            "qos": sorted(qos.name for qos in limits.qos),
            "reservation": sorted(reservation.name for reservation in limits.reservations),
            "constraint": sorted(limits.feature_names),
        }

    def _check_options(self, request: TemplateRequest) -> None:
        """Refuse accounts and QOS that Slurm does not know; a reservation may come later."""
        names = self.option_names()
        problems = [
            FieldError(name, f"Slurm has no {word} {value}")
            for name, word in (("account", "account"), ("qos", "QOS"))
            if (value := getattr(request, name)) and names[name] and value not in names[name]
        ]
        if problems:
            raise InvalidRequest(problems)

    def drop_template(self, person: Person, name: str, etag: str | None = None) -> Template:
        """Delete a template; sessions launched with it are not affected.

        Raises NotFound, or Conflict if its ETag is not `etag`.
        """
        self.admit(person)

        def line(template: Template) -> AuditEvent:
            return self._entry(person, "template.delete", name, describe_template(template))

        dropped = self._store.drop_template(name, etag, line)
        if dropped is None:
            raise NotFound("There is no such template.")
        return dropped

    def move_template(self, person: Person, name: str, by: int) -> None:
        """Move a template up (-1) or down (+1); at either end it stays."""
        self.admit(person)

        def line(position: int) -> AuditEvent:
            return self._entry(person, "template.order", name, f"now at place {position + 1}")

        if not self._store.move_template(name, by, line):
            raise NotFound("There is no such template.")

    # Images

    def visible_catalog(self, person: Person, catalog: Catalog) -> Catalog:
        """The catalog reduced to the images that this user may see and launch."""
        if person.admin:
            return catalog
        settings, limits = self._store.site_settings(), self._status.reported().limits
        return settings.visible_catalog(person, catalog, limits)

    def refused_files(self, person: Person, catalog: Catalog) -> tuple[RefusedFile, ...]:
        """The site's image files that this user may not start as own images."""
        return refused_files(catalog, self.visible_catalog(person, catalog))

    def rules_of(self, person: Person, catalog: Catalog) -> list[tuple[Image, ImageRule]]:
        """All images with their visibility rules, for an administrator."""
        self.admit(person)
        rules = self._store.image_rules()
        return [(image, image_rule(image, rules)) for image in catalog.images]

    def image_rule(
        self, person: Person, catalog: Catalog, environment: str, version: str
    ) -> tuple[Image, ImageRule]:
        """One image and its visibility rule; raises NotFound."""
        self.admit(person)
        image = catalog.image(environment, version)
        if image is None:
            raise NotFound("There is no such image.")
        return image, image_rule(image, self._store.image_rules())

    def save_image_rule(
        self,
        person: Person,
        catalog: Catalog,
        environment: str,
        version: str,
        request: ImageRequest,
        etag: str | None = None,
    ) -> ImageRule:
        """Set who sees an image; running sessions are not affected."""
        self.image_rule(person, catalog, environment, version)
        check_principals(request, self._status.reported().limits)
        fields = request.model_dump() if request.seen_by in NAMING else {"seen_by": request.seen_by}
        rule = ImageRule(environment=environment, version=version, **fields)

        def change(before: ImageRule) -> tuple[ImageRule, AuditEvent]:
            detail = _changed(describe_rule(rule), describe_rule(before))
            return rule, self._entry(person, "image.show", f"{environment} {version}", detail)

        return self._store.save_image_rule(environment, version, etag, change)

    def principals(self, person: Person) -> tuple[list[str], list[str]]:
        """Slurm's accounts and users, as last read, for an administrator."""
        self.admit(person)
        limits = self._status.reported().limits
        associations = limits.associations if limits else ()
        accounts = sorted({a.account for a in associations if a.account})
        return accounts, sorted({a.user for a in associations if a.user})

    # Caps and limits

    def site_rules(self) -> SiteRules:
        """The site-wide caps."""
        return self._store.site_rules()

    def save_rules(
        self, person: Person, request: CapsRequest, etag: str | None = None
    ) -> SiteRules:
        """Replace the caps; existing sessions are not affected."""
        self.admit(person)

        def change(before: SiteRules) -> tuple[SiteRules, AuditEvent]:
            rules = request.rules(before, self._clock())
            detail = _changed(describe_caps(rules), describe_caps(before))
            return rules, self._entry(person, "caps.change", detail=detail)

        return self._store.save_site_rules(etag, change)

    def limits(self, person: Person) -> LimitReport | None:
        """Slurm's limits as last read, each with its command; None before the first poll."""
        self.admit(person)
        reported = self._status.reported()
        return limit_report(reported.limits, reported.partitions) if reported.limits else None

    def nodes(self, person: Person) -> NodeSummary:
        """All nodes together, as last polled."""
        self.admit(person)
        return self._status.nodes.summary()

    def node_page(self, person: Person, query: NodeQuery) -> NodePage:
        """A page of the nodes, with the use of each by user, as last polled."""
        self.admit(person)
        return self._status.nodes.page(query)

    # The audit log

    def record(self, who: str, action: str, target: str = "", detail: str = "") -> None:
        """Write an event to the audit log; never secrets."""
        self.record_all(who, action, [(target, detail)])

    def record_all(self, who: str, action: str, lines: Iterable[tuple[str, str]]) -> None:
        """Write an event for each target and detail.

        The recorded actions have already happened, so a failure to write is not raised; the
        events are then written to the portal's log, as an error.
        """
        entries = [self.new_event(who, action, target, detail) for target, detail in lines]
        try:
            self._store.add_events(entries)
        except Exception as error:
            text = "; ".join(entry.model_dump_json(exclude={"id"}) for entry in entries)
            unexpected = not isinstance(error, DatabaseUnavailable)
            log.error("not in the audit log: %s", text, exc_info=unexpected)

    def _entry(self, person: Person, action: str, target: str = "", detail: str = "") -> AuditEvent:
        return self.new_event(person.name, action, target, detail)

    def new_event(self, who: str, action: str, target: str = "", detail: str = "") -> AuditEvent:
        """An event with the current time, for a store that writes it with the recorded change."""
        return AuditEvent(
            time=self._clock(),
            who=who,
            action=action,
            target=target,
            detail=detail[:MAX_DETAIL],
            address=caller_address.get(),
        )

    def events(
        self, person: Person, event_filter: AuditFilter, limit: int, before: int | None
    ) -> tuple[list[AuditEvent], int | None]:
        """One page of events, newest first, and the cursor of the next page."""
        self.admit(person)
        events = self._store.events(event_filter, limit + 1, before)
        page = events[:limit]
        return page, page[-1].id if len(events) > limit else None

    def export(self, person: Person, event_filter: AuditFilter) -> Iterator[AuditEvent]:
        """All matching events, newest first, at most MAX_EXPORT; read in short transactions."""
        self.admit(person)
        self.record(
            person.name, "journal.export", "", event_filter.model_dump_json(exclude_none=True)
        )
        return self._all_events(event_filter)

    def _all_events(self, event_filter: AuditFilter) -> Iterator[AuditEvent]:
        before: int | None = None
        for _ in range(MAX_EXPORT // _PIECE):
            events = self._store.events(event_filter, _PIECE, before)
            yield from events
            if len(events) < _PIECE:
                return
            before = events[-1].id

    def events_of(self, target: str, actions: Collection[str], limit: int) -> list[AuditEvent]:
        """Events with this target, newest first; callers check who may see the target."""
        return self._store.events_of(target, actions, limit)

    def expire(self) -> None:
        """Delete events that are older than the site's retention time."""
        self._store.delete_events(self._clock() - self._keep)


def _changed(now: str, before: str | None) -> str:
    return now if before in (None, now) else f"{now}; before: {before}"
