"""The settings of the command `slipway sbatch`: the rules of the portal, as it reads them.

The command needs no portal to submit, so rules about accounts are resolved to user names here.
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
    """What the site's settings say about batch jobs."""

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
    """The settings, as portal/node/batch/settings.py reads them."""
    known = list(rules)

    def images(found: Iterable[Image]) -> list[dict[str, object]]:
        return [_image(image, image_rule(image, known), limits) for image in found]

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
    found: dict[str, object] = {
        "environment": image.environment,
        "version": image.version,
        "path": image.path,
        "default": image.default,
        "files": image.files,
    }
    match rule.seen_by:
        case "nobody":
            found["visible_to"] = []
        case "some":
            found["visible_to"] = _people(rule, limits)
        case "except":
            found["hidden_from"] = _people(rule, limits)
    return found


def _people(rule: ImageRule, limits: Limits | None) -> list[str]:
    """The users whom a rule names, by themselves or by an account or one above it."""
    associations = limits.associations if limits else ()
    above = {a.account: a.parent for a in associations if not a.user}
    named = set(rule.accounts)
    for account in above:
        path = [account]
        while (parent := above.get(path[-1], "")) and parent not in path:
            path.append(parent)
        if not named.isdisjoint(path):
            named.add(account)
    having = {a.user for a in associations if a.user and a.account in named}
    return sorted(having | set(rule.users))
