"""Sites on which nothing can be launched."""

from __future__ import annotations

from portal.core.cluster.rules.site import unfenced


def test_without_cgroups_it_is_refused_in_words() -> None:
    assert "cgroups" in unfenced(False)
    assert unfenced(True) == ""
