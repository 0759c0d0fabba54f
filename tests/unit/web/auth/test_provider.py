"""Log-in by OpenID Connect, with a provider over HTTP that can be made to lie."""

from __future__ import annotations

import random
import re
from pathlib import Path
from string import ascii_letters, digits
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit, urlunsplit

import pytest
from flask import Flask
from joserfc.jwk import RSAKey
from werkzeug.test import Cookie, TestResponse

from portal.core.admin.audit import AuditEvent, AuditFilter
from portal.core.auth.person import Person
from tests.support.fakes import PASSWORDS
from tests.support.launch_pages import WIZARD_FORM, field_value
from tests.support.openid_provider import CLIENT, OpenIdServer, elliptic_key
from tests.unit.web.auth.conftest import Site, Sites
from tests.unit.web.conftest import PORTAL, Browser

LOST = "was used before, or has expired"
INVALID = "The answer of University login is not valid"


def _events(site: Site) -> list[AuditEvent]:
    admin = Person("admin", True, "")
    return list(site.world.services.administration.events(admin, AuditFilter(), 100, None)[0])


def user_of(browser: Browser) -> str:
    """Who is logged in."""
    return str((browser.get("/login/state").get_json() or {})["user"])


def cookies_of(browser: Browser) -> list[Cookie]:
    """Those of log-ins under way."""
    cookies = (browser.client._cookies or {}).values()
    return [c for c in cookies if c.key.startswith("slipway-oidc-") and c.value]


def changed(url: str, **changes: str | None) -> str:
    """The address with other parameters."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query)) | changes
    kept = {name: value for name, value in query.items() if value is not None}
    return urlunsplit(parts._replace(query=urlencode(kept)))


def test_somebody_logs_in_and_is_shown_what_they_asked_for(site: Site) -> None:
    browser = site.browser()
    answer = site.log_in(browser, target="/jobs?state=running")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/jobs?state=running")
    assert user_of(browser) == "alice"
    login = site.world.services.logins.logins_of("alice")[0]
    assert (login.method, login.subject, login.sid) == ("oidc", "u1", "s-u1")
    assert login.issuer == site.provider.issuer
    assert not site.world.services.logins.person(login).admin
    assert login.id_token not in repr(login)


def test_the_request_has_pkce_state_and_nonce_that_are_never_the_same(site: Site) -> None:
    queries = [parse_qs(urlsplit(site.begin(site.browser())).query) for _ in range(2)]
    for name in ("state", "nonce", "code_challenge"):
        assert len({query[name][0] for query in queries}) == 2
        assert all(len(query[name][0]) >= 43 for query in queries)
    assert queries[0]["redirect_uri"] == [f"{PORTAL}/login/oidc/callback"]
    assert queries[0]["scope"] == ["openid profile email"]


def test_the_page_has_the_button_first_then_the_password(site: Site) -> None:
    page = site.browser().get("/login?next=/jobs").text
    assert page.index('href="/login/oidc?next=%2Fjobs"') < page.index('name="password"')
    answer = site.browser().log_in("alice")
    assert user_of(answer) == "alice"


def test_without_an_issuer_there_is_nothing(app: Flask) -> None:
    browser = Browser(app)
    assert "/login/oidc" not in browser.get("/login").text
    for path in ("/login/oidc", "/login/oidc/callback", "/login/oidc/logged-out"):
        assert browser.get(path).status_code == 404
    assert browser.client.post("/login/oidc/back-channel", base_url=PORTAL).status_code == 404


# State


def test_a_forged_state(site: Site) -> None:
    browser = site.browser()
    back = site.provider.authorize(site.begin(browser), preferred_username="alice")
    for state in ("x", "", None):
        answer = site.back(browser, changed(back, state=state))
        assert (answer.status_code, LOST in answer.text) == (401, True)
    assert site.back(browser, back).status_code == 303


def test_an_answer_in_another_browser_logs_nobody_in(site: Site) -> None:
    back = site.provider.authorize(site.begin(site.browser()), preferred_username="alice")
    victim = site.browser()
    site.begin(victim)
    assert LOST in site.back(victim, back).text
    assert user_of(victim) == ""


def test_an_answer_counts_once_even_with_the_cookie_put_back(site: Site) -> None:
    browser, provider = site.browser(), site.provider
    start = site.begin(browser)
    cookie = cookies_of(browser)[0]
    assert cookie.http_only
    assert cookie.same_site == "Lax"
    assert site.back(browser, provider.authorize(start, preferred_username="alice"))
    assert not cookies_of(browser)
    thief = site.browser()
    thief.client.set_cookie(cookie.key, cookie.value, domain="localhost")
    answer = site.back(thief, provider.authorize(start, preferred_username="bob"))
    assert (answer.status_code, LOST in answer.text, user_of(thief)) == (401, True, "")


def test_a_log_in_expires_after_ten_minutes(site: Site) -> None:
    browser = site.browser()
    start = site.begin(browser)
    site.world.clock.advance(seconds=601)
    answer = site.back(browser, site.provider.authorize(start, preferred_username="alice"))
    assert (answer.status_code, LOST in answer.text) == (401, True)


def test_a_cookie_of_our_own_making_does_not_count(site: Site) -> None:
    browser = site.browser()
    back = site.provider.authorize(site.begin(browser), preferred_username="alice")
    cookie = cookies_of(browser)[0]
    browser.client.set_cookie(cookie.key, cookie.value[:-2] + "xx", domain="localhost")
    assert LOST in site.back(browser, back).text


def test_several_tabs_log_in_and_share_one_login(site: Site) -> None:
    browser = site.browser()
    starts = [site.begin(browser, f"/jobs?tab={tab}") for tab in (1, 2)]
    backs = [site.provider.authorize(start, preferred_username="alice") for start in starts]
    for tab, back in ((2, backs[1]), (1, backs[0])):
        assert site.back(browser, back).headers["Location"] == f"/jobs?tab={tab}"
    assert len(site.world.services.logins.logins_of("alice")) == 1


def test_cookies_of_log_ins_that_nobody_finishes_do_not_pile_up(site: Site) -> None:
    browser = site.browser()
    starts = []
    for _ in range(8):
        starts.append(site.begin(browser))
        site.world.clock.advance(seconds=1)
    held = cookies_of(browser)
    assert len(held) == 4
    last = site.provider.authorize(starts[-1], preferred_username="alice")
    assert site.back(browser, last).status_code == 303


@pytest.mark.parametrize("where", ["cross-site", "same-site"])
def test_no_other_site_starts_a_log_in(site: Site, where: str) -> None:
    answer = site.browser().get("/login/oidc", headers={"Sec-Fetch-Site": where})
    assert answer.headers["Location"] == "/login"


def test_only_a_whole_window_comes_back(site: Site) -> None:
    browser = site.browser()
    back = site.provider.authorize(site.begin(browser), preferred_username="alice")
    for kind in ("iframe", "image", "script", "empty"):
        headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": kind}
        assert browser.get(back.removeprefix(PORTAL), headers=headers).status_code == 401
    assert user_of(browser) == ""
    assert site.back(browser, back).status_code == 303


@pytest.mark.parametrize(
    "target", ["https://evil.example.org/", "//evil.example.org", "/\\evil.example.org", "x"]
)
def test_no_redirect_to_another_site(site: Site, target: str) -> None:
    assert site.log_in(target=target).headers["Location"] == "/sessions"


def test_a_parameter_twice_is_refused(site: Site) -> None:
    browser = site.browser()
    back = site.provider.authorize(site.begin(browser), preferred_username="alice")
    assert site.back(browser, back + "&code=other").status_code == 401
    assert user_of(browser) == ""


# The code and the ID token


def test_a_code_counts_once(site: Site) -> None:
    browser = site.browser()
    first = site.provider.authorize(site.begin(browser), preferred_username="alice")
    assert site.back(browser, first).status_code == 303
    code = parse_qs(urlsplit(first).query)["code"][0]
    other = site.browser()
    back = site.provider.authorize(site.begin(other), preferred_username="bob")
    answer = site.back(other, changed(back, code=code))
    assert (answer.status_code, "was used before" in answer.text) == (401, True)


def test_a_code_of_somebody_elses_log_in_is_refused_by_pkce(site: Site) -> None:
    stolen = site.provider.authorize(site.begin(site.browser()), preferred_username="alice")
    thief = site.browser()
    back = site.provider.authorize(site.begin(thief), preferred_username="bob")
    code = parse_qs(urlsplit(stolen).query)["code"][0]
    assert site.back(thief, changed(back, code=code)).status_code == 401
    assert user_of(thief) == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"nonce": "other"},
        {"nonce": None},
        {"aud": "other"},
        {"aud": [CLIENT, "other"]},
        {"aud": [CLIENT, "other"], "azp": "other"},
        {"azp": "other"},
        {"aud": None},
        {"iss": "https://other.example.org"},
        {"iss": None},
        {"exp": -120},
        {"exp": None},
        {"iat": +120},
        {"iat": None},
        {"nbf": +120},
        {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"exp": "soon"},
        {"sub": "x" * 256},
    ],
    ids=lambda changes: ",".join(f"{n}={str(v)[:20]}" for n, v in changes.items()),
)
def test_an_invalid_id_token(site: Site, changes: dict[str, Any]) -> None:
    def change(claims: dict[str, Any]) -> dict[str, Any]:
        times = {n: site.provider.now + v for n, v in changes.items() if isinstance(v, int)}
        times = {n: v for n, v in times.items() if n in ("exp", "iat", "nbf")}
        return {n: v for n, v in (claims | changes | times).items() if v is not None}

    site.provider.change = change
    browser = site.browser()
    answer = site.log_in(browser)
    assert (answer.status_code, INVALID in answer.text) == (401, True)
    assert user_of(browser) == ""


def test_clocks_may_be_a_minute_apart(site: Site) -> None:
    site.provider.change = lambda claims: claims | {"exp": site.provider.now - 50}
    assert site.log_in().status_code == 303
    site.provider.change = lambda claims: claims | {"iat": site.provider.now + 50}
    assert site.log_in().status_code == 303


@pytest.mark.parametrize("how", ["not_sign", "sign_with_public_key", "sign_with_secret"])
def test_no_signature_and_none_with_a_shared_key(site: Site, how: str) -> None:
    site.provider.encode = getattr(site.provider, how)
    answer = site.log_in()
    assert (answer.status_code, INVALID in answer.text) == (401, True)


def test_a_key_that_the_provider_does_not_publish(site: Site) -> None:
    assert site.log_in().status_code == 303
    published = list(site.provider.published)
    site.provider.rotate()
    site.provider.published = published
    answer = site.log_in()
    assert (answer.status_code, INVALID in answer.text) == (401, True)


def test_a_key_of_the_same_name_by_somebody_else(site: Site, provider: OpenIdServer) -> None:
    mine = provider.key
    provider.rotate()
    pem = provider.key.as_pem(private=True)
    provider.key, provider.published = RSAKey.import_key(pem, {"kid": str(mine.kid)}), [mine]
    assert site.log_in().status_code == 401


def test_other_signatures_with_public_keys(site: Site, provider: OpenIdServer) -> None:
    provider.algorithm, key = "ES256", elliptic_key()
    provider.key = key  # type: ignore[assignment]
    provider.published = [key]
    assert site.log_in().status_code == 303


# The provider's own answers


def test_an_answer_of_another_provider_is_a_mix_up(site: Site) -> None:
    for issuer in ("https://evil.example.org", None):
        browser = site.browser()
        back = site.provider.authorize(site.begin(browser), preferred_username="alice")
        answer = site.back(browser, changed(back, iss=issuer))
        assert (answer.status_code, "another log-in service" in answer.text) == (401, True)
    assert "/token" not in site.provider.asked  # the code was sent to nobody


def test_a_provider_that_sends_no_issuer_need_not(site: Site) -> None:
    site.provider.metadata = {"authorization_response_iss_parameter_supported": None}
    browser = site.browser()
    back = site.provider.authorize(site.begin(browser), preferred_username="alice")
    assert site.back(browser, changed(back, iss=None)).status_code == 303


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("access_denied", "You cancelled, or University login does not let you"),
        ("login_required", "wants you to log in there again"),
        ("temporarily_unavailable", "Try again later"),
        ("invalid_scope", "refuses the portal (invalid_scope)"),
        ("<b>", "refuses the portal (unknown error)"),
    ],
)
def test_errors_of_the_provider_are_said_in_words(site: Site, error: str, words: str) -> None:
    browser = site.browser()
    back = site.provider.authorize(site.begin(browser, "/jobs"))
    answer = site.back(browser, changed(back, code=None, error=error, error_description="<i>x"))
    assert answer.status_code == 401
    assert words in answer.text
    assert "<i>x" not in answer.text
    assert 'href="/login/oidc?next=%2Fjobs"' in answer.text  # trying again leads there, too


@pytest.mark.parametrize(("length", "goes_on"), [(500, True), (3900, False)])
def test_an_address_that_no_cookie_can_hold_does_not_prevent_the_log_in(
    site: Site, length: int, goes_on: bool
) -> None:
    browser = site.browser()
    target = f"/jobs?{''.join(random.Random(1).choices(ascii_letters + digits, k=length))}"
    answer = browser.get("/login/oidc", query_string={"next": target})
    (cookie,) = answer.headers.getlist("Set-Cookie")
    assert len(cookie.partition(";")[0]) <= 4096
    back = site.provider.authorize(answer.headers["Location"], preferred_username="alice")
    assert site.back(browser, back).headers["Location"] == (target if goes_on else "/sessions")


@pytest.mark.parametrize(
    "metadata", [{"issuer": "https://x"}, {"authorization_endpoint": "ftp://x/"}]
)
def test_wrong_metadata(site: Site, metadata: dict[str, Any]) -> None:
    site.provider.metadata = metadata
    assert site.browser().get("/login/oidc").status_code == 503


def test_an_outage_is_said_and_the_password_remains(site: Site) -> None:
    site.provider.down = True
    browser = site.browser()
    answer = browser.get("/login/oidc?next=/jobs")
    assert (answer.status_code, 'name="password"' in answer.text) == (503, True)
    assert "University login does not answer as it should" in answer.text
    browser.log_in("alice")
    assert user_of(browser) == "alice"


def test_an_outage_between_start_and_return(site: Site) -> None:
    browser = site.browser()
    back = site.provider.authorize(site.begin(browser), preferred_username="alice")
    site.provider.down = True
    assert site.back(browser, back).status_code == 503
    assert user_of(browser) == ""


def test_too_many_failures_from_one_address(site_of: Sites) -> None:
    """Those without a log-in that was begun are not failures: nobody is asked."""
    site = site_of()
    most = 10 * site.world.services.settings.web.logins_per_account
    browser = site.browser()
    for _ in range(most + 1):
        assert browser.get("/login/oidc/callback?state=x&code=y").status_code == 401
    assert {site.log_in(preferred_username="root").status_code for _ in range(most)} == {403}
    answer = site.log_in()
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "18")
    assert "log-ins from your network have failed. Wait 18 seconds" in answer.text
    assert browser.log_in("alice"), "passwords are counted apart"


def test_log_ins_that_succeed_are_not_limited(site: Site) -> None:
    assert {site.log_in().status_code for _ in range(60)} == {303}


# Which account


@pytest.mark.parametrize("name", ["root", "Alice", "ALICE", "nobody-known", "a b", "-oProxy", "é"])
def test_accounts_that_nobody_gets(site: Site, name: str) -> None:
    browser = site.browser()
    answer = site.log_in(browser, preferred_username=name)
    assert (answer.status_code, "does not exist on the cluster" in answer.text) == (403, True)
    assert user_of(browser) == ""


def test_the_portals_own_account_is_nobodys(site: Site) -> None:
    identities = site.world.accounts.identities
    identities["slipway"] = identities["bob"]
    assert site.log_in(preferred_username="slipway").status_code == 403
    assert site.log_in(preferred_username="bob").status_code == 303


def test_an_account_that_the_login_node_refuses(site: Site) -> None:
    site.world.accounts.refused.add("alice")
    assert site.log_in().status_code == 403


def test_a_login_node_that_does_not_answer(site: Site) -> None:
    site.world.accounts.silent = True
    assert site.log_in().status_code == 503


@pytest.mark.parametrize("value", [None, 7, "", "x" * 257, ["alice"]])
def test_a_claim_that_tells_no_account(site: Site, value: Any) -> None:
    answer = site.log_in(preferred_username=value)
    assert (answer.status_code, "“preferred_username” is missing" in answer.text) == (401, True)


def test_a_pattern_takes_the_account_out_of_the_claim(site_of: Sites) -> None:
    site = site_of(claim="eppn", pattern=r"([a-z]+)@example\.org")
    assert site.log_in(eppn="alice@example.org").status_code == 303
    for wrong in ("alice@example.org.evil.net", "alice@example-org", "x\nalice@example.org"):
        assert site.log_in(eppn=wrong).status_code == 401


def test_a_file_maps_claims_to_accounts(site_of: Sites, tmp_path: Path) -> None:
    file = tmp_path / "accounts"
    file.write_text("# who\nu-17 alice  # Alice\n")
    site = site_of(claim="sub", accounts_file=str(file))
    browser = site.browser()
    assert site.log_in(browser, subject="u-17").status_code == 303
    assert user_of(browser) == "alice"
    assert "belongs to “alice”" in site.log_in(subject="alice").text
    file.write_text("u-18 alice\n")
    assert site.log_in(subject="u-17").status_code == 401
    file.unlink()
    assert site.log_in(subject="u-18").status_code == 503


@pytest.mark.parametrize(("verified", "status"), [(True, 303), (False, 401), (None, 401)])
def test_mail_must_be_verified(site_of: Sites, verified: bool | None, status: int) -> None:
    site = site_of(claim="email", pattern=r"(.+)@example\.org")
    answer = site.log_in(email="alice@example.org", email_verified=verified)
    assert answer.status_code == status


def test_userinfo_has_what_the_id_token_lacks_for_the_same_subject_only(site_of: Sites) -> None:
    site = site_of(claim="uid")
    site.provider.userinfo = {"uid": "alice", "iss": "ignored"}
    assert site.log_in().status_code == 303
    site.provider.userinfo |= {"sub": "u2"}
    assert INVALID in site.log_in().text


@pytest.mark.parametrize("sid", ["s-other", "a\0b", "s" * 300])
def test_the_providers_session_is_the_id_tokens_alone(site_of: Sites, sid: str) -> None:
    site = site_of(claim="uid")
    site.provider.userinfo = {"uid": "alice", "sid": sid}
    site.provider.change = lambda claims: {k: v for k, v in claims.items() if k != "sid"}
    assert site.log_in().status_code == 303
    assert [login.sid for login in site.world.services.logins.logins_of("alice")] == [""]


def test_userinfo_has_groups_and_whether_mail_is_verified(site_of: Sites) -> None:
    site = site_of(
        claim="email", pattern=r"(.+)@example\.org", groups_claim="realm.roles",
        allowed_groups=["staff"],
    )  # fmt: skip
    site.provider.userinfo = {"email_verified": True, "realm": {"roles": ["staff"]}}
    assert site.log_in(email="alice@example.org").status_code == 303


def test_groups_decide_who_comes_in_and_who_administers(site_of: Sites) -> None:
    site = site_of(
        groups_claim="realm.roles", allowed_groups=["staff"], admin_groups=["hpc-admins"]
    )
    refused = site.log_in(realm={"roles": ["guests"]})
    assert (refused.status_code, "none of the groups" in refused.text) == (403, True)
    assert site.log_in().status_code == 403
    plain, admin = site.browser(), site.browser()
    assert site.log_in(plain, realm={"roles": ["staff"]}).status_code == 303
    assert plain.get("/admin").status_code in (403, 404)
    assert site.log_in(admin, realm={"roles": ["hpc-admins"]}).status_code == 303
    assert admin.get("/admin", follow_redirects=True).status_code == 200


def test_a_token_administers_only_while_its_owner_is_logged_in_as_administrator(
    site_of: Sites,
) -> None:
    site = site_of(groups_claim="groups", admin_groups=["hpc-admins"])
    browser = site.browser()
    site.log_in(browser, groups="hpc-admins")
    form = {"name": "script", "days": "30", "scopes": ["read", "admin"]}
    page = browser.post("/account/tokens", form).text
    found = re.search(r"slipway_[\w-]{43}", page)
    assert found, page
    client = site.app.test_client()
    headers = {"Authorization": f"Bearer {found[0]}"}

    def status() -> int:
        return client.get("/api/v1/admin/people", base_url=PORTAL, headers=headers).status_code

    assert status() == 200
    browser.post("/logout")
    assert status() == 404
    site.log_in(browser, groups=["others"])
    assert status() == 404
    own = client.get("/api/v1/tokens", base_url=PORTAL, headers=headers).get_json()
    assert own["tokens"][0]["scopes"] == ["read"]


def test_groups_of_another_issuer_make_no_administrator(site_of: Sites) -> None:
    site = site_of(groups_claim="groups", admin_groups=["hpc-admins"])
    browser = site.browser()
    site.log_in(browser, groups=["hpc-admins"])
    site.world.services.logins._admin_issuer = "https://new.example.org"
    assert browser.get("/admin").status_code in (403, 404)


def test_the_journal_says_how_somebody_came_in_and_who_did_not(site: Site) -> None:
    site.log_in()
    site.log_in(preferred_username="root", subject="u9")
    events = [(e.who, e.action, e.detail) for e in _events(site)]
    assert ("alice", "login", "oidc: u1") in events
    refused = next(detail for _who, action, detail in events if action == "login.refused")
    assert refused.startswith("oidc: u9: The account “root”")


# Passwords


def test_without_passwords_every_way_says_so(site_of: Sites) -> None:
    site = site_of(password=False)
    browser = site.browser()
    assert 'name="password"' not in browser.get("/login").text
    fields = {"username": "alice", "password": PASSWORDS["alice"]}
    token = browser.get("/login/state").get_json()["csrf_token"]
    for path in ("/login", "/login/again"):
        answer = browser.client.post(path, data=fields | {"csrf_token": token}, base_url=PORTAL)
        assert (answer.status_code, "Passwords are not accepted here" in answer.text) == (403, True)
    answer = browser.client.post("/api/v1/tokens", json=fields, base_url=PORTAL)
    assert answer.status_code == 403
    assert "API tokens are created on the page" in answer.get_json()["detail"]
    assert user_of(browser) == ""


# Forms that are kept


def test_a_form_survives_a_log_in_in_another_tab(site: Site) -> None:
    browser = site.browser()
    site.log_in(browser)
    token = browser.get("/login/state").get_json()["csrf_token"]
    site.world.services.logins.revoke_all("alice", "alice")
    sent = WIZARD_FORM | {"csrf_token": token, "who": "alice", "name": "kept1"}
    page = browser.client.post("/sessions", data=sent, base_url=PORTAL)
    assert page.status_code == 401
    assert 'href="/login/oidc?next=/login/done" target="_blank"' in page.text
    kept = {
        "kept": field_value(page.text, "kept"),
        "kept_form": field_value(page.text, "kept_form"),
    }
    early = browser.client.post("/login/kept", data=kept, base_url=PORTAL)
    assert (early.status_code, field_value(early.text, "kept")) == (401, kept["kept"])
    assert site.log_in(browser, target="/login/done").headers["Location"] == "/login/done"
    assert "alice" in browser.get("/login/done").text
    again = browser.client.post("/login/kept", data=kept, base_url=PORTAL)
    assert field_value(again.text, "name") == "kept1"
    other = site.browser()
    site.log_in(other, preferred_username="bob")
    assert "kept1" not in other.client.post("/login/kept", data=kept, base_url=PORTAL).text


# Logging out


def test_logging_out_leads_to_the_provider(site: Site) -> None:
    browser = site.browser()
    site.log_in(browser)
    login = site.world.services.logins.logins_of("alice")[0]
    page = browser.post("/logout").text
    found = re.search(r'content="0; url=([^"]+)"', page)
    assert found, page
    query = parse_qs(urlsplit(found[1].replace("&amp;", "&")).query)
    assert query == {
        "id_token_hint": [login.id_token],
        "client_id": [CLIENT],
        "post_logout_redirect_uri": [f"{PORTAL}/login/oidc/logged-out"],
    }
    assert user_of(browser) == ""
    assert (
        "You are logged out." in browser.get("/login/oidc/logged-out", follow_redirects=True).text
    )


@pytest.mark.parametrize("metadata", [{"end_session_endpoint": None}, {}])
def test_logging_out_here_alone(
    site_of: Sites, provider: OpenIdServer, metadata: dict[str, Any]
) -> None:
    provider.metadata = metadata
    site = site_of(logout=bool(metadata))
    browser = site.browser()
    site.log_in(browser)
    assert browser.post("/logout").headers["Location"] == "/login"
    by_password = site.browser().log_in("alice")
    assert by_password.post("/logout").headers["Location"] == "/login"


def back_channel(site: Site, token: str) -> TestResponse:
    """The provider's own request."""
    data = {"logout_token": token}
    return site.app.test_client().post("/login/oidc/back-channel", data=data, base_url=PORTAL)


def test_the_provider_ends_its_session_and_no_other(site: Site) -> None:
    one, two, three = site.browser(), site.browser(), site.browser()
    site.log_in(one, sid="s1")
    site.log_in(two, sid="s2")
    site.log_in(three, subject="u2", preferred_username="bob", sid="s3")
    assert back_channel(site, site.provider.logout_token(sid="s1")).status_code == 200
    assert [user_of(b) for b in (one, two, three)] == ["", "alice", "bob"]
    token = site.provider.logout_token()
    assert back_channel(site, token).status_code == 200
    assert [user_of(b) for b in (two, three)] == ["", "bob"]
    site.log_in(one)
    assert back_channel(site, token).status_code == 400  # it counts once
    assert user_of(one) == "alice"
    assert back_channel(site, site.provider.logout_token(sub="u9")).status_code == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"events": None},
        {"events": {}},
        {"nonce": "n"},
        {"aud": "other"},
        {"iss": "https://other.example.org"},
        {"sub": None},
        {"jti": None},
        {"iat": 1},
        {"exp": 1},
        {"sub": 1},
    ],
    ids=str,
)
def test_an_invalid_logout_token_ends_nothing(site: Site, changes: dict[str, Any]) -> None:
    browser = site.browser()
    site.log_in(browser)
    assert back_channel(site, site.provider.logout_token(**changes)).status_code == 400
    assert user_of(browser) == "alice"


def test_an_id_token_is_no_logout_token(site: Site) -> None:
    browser = site.browser()
    site.log_in(browser)
    token = site.world.services.logins.logins_of("alice")[0].id_token
    assert back_channel(site, token).status_code == 400
    assert back_channel(site, "").status_code == 400
    site.provider.encode = site.provider.not_sign
    assert back_channel(site, site.provider.logout_token()).status_code == 400
    assert user_of(browser) == "alice"


# Keys


def test_a_new_key_is_fetched_and_metadata_is_not_asked_for_each_log_in(site: Site) -> None:
    assert site.log_in().status_code == 303
    assert site.log_in().status_code == 303
    for path in ("/.well-known/openid-configuration", "/jwks"):
        assert site.provider.asked.count(path) == 1
