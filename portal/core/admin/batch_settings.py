"""The settings file of `slipway sbatch`, with the portal's rules for batch jobs.

The command submits without the portal, so rules about accounts are resolved to user names here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from portal.core.admin.images import ImageRule, image_rule
from portal.core.apps.catalog import Catalog, Image
from portal.core.cluster.gpu_offers import Gpus
from portal.core.cluster.limits import Limits
from portal.core.launch.own_image import NO_OWN_IMAGES, OwnImageRules
from portal.core.site_rules import SiteRules
from portal.node.common.fgpu import kinds_as_json


@dataclass(frozen=True)
class BatchSite:
    """The site's settings for batch jobs."""

    command: str
    toolkit: str
    storage: str
    binds: tuple[str, ...] = ()
    images: OwnImageRules = NO_OWN_IMAGES


def batch_settings(
    site: BatchSite,
    catalog: Catalog,
    rules: Iterable[ImageRule],
    limits: Limits | None,
    gpus: Gpus,
    site_rules: SiteRules,
) -> dict[str, object]:
    """Build the settings that portal/node/batch/settings.py reads."""
    all_rules = list(rules)

    def images(listed: Iterable[Image]) -> list[dict[str, object]]:
        return [_image(image, image_rule(image, all_rules), limits) for image in listed]

    return {
        "version": 1,
        "command": site.command,
        "toolkit": site.toolkit,
        "storage": site.storage,
        "binds": list(site.binds),
        "own_images": list(site.images.sources),
        "registries": list(site.images.registries),
        "insecure": list(site.images.insecure),
        "max_image_mb": site.images.max_mb,
        "image_cache_mb": site.images.cache_mb,
        "max_shared_memory_mb": site_rules.max_shared_memory_mb,
        "gpu_kinds": kinds_as_json(gpus.kinds),
        "images": images(catalog.images),
        "left_out": images(image for image in catalog.left_out if not image.retired),
        "retired": images(
            image for image in (*catalog.retired, *catalog.left_out) if image.retired
        ),
    }


def _image(image: Image, rule: ImageRule, limits: Limits | None) -> dict[str, object]:
    fields: dict[str, object] = {
        "environment": image.environment,
        "version": image.version,
        "path": image.path,
        "default": image.default,
        "files": image.files,
    }
    match rule.seen_by:
        case "nobody":
            fields["visible_to"] = []
        case "some":
            fields["visible_to"] = _people(rule, limits)
        case "except":
            fields["hidden_from"] = _people(rule, limits)
    return fields


def _people(rule: ImageRule, limits: Limits | None) -> list[str]:
    """The users to whom a rule applies: by name, by account, or by a parent account."""
    associations = limits.associations if limits else ()
    parents = {a.account: a.parent for a in associations if not a.user}
    accounts = set(rule.accounts)
    for account in parents:
        path = [account]
        while (parent := parents.get(path[-1], "")) and parent not in path:
            path.append(parent)
        if not accounts.isdisjoint(path):
            accounts.add(account)
    members = {a.user for a in associations if a.user and a.account in accounts}
    return sorted(members | set(rule.users))
