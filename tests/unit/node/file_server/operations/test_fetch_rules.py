"""Which URLs a site permits."""

from __future__ import annotations

import pytest

from portal.node.file_server.errors import Refused
from portal.node.file_server.operations.fetch_rules import FetchRules, Source
from portal.node.file_server.operations.fetching.connecting import is_public

RULES = FetchRules(("Data.Example.org", "*.zenodo.org", "mirror.example.net:8443"))


def refused(rules: FetchRules, url: str) -> tuple[int, str, str]:
    with pytest.raises(Refused) as found:
        rules.source(url)
    return found.value.status, found.value.code, found.value.field


@pytest.mark.parametrize(
    ("url", "host", "port", "target", "is_named"),
    [
        ("https://data.example.org/a/b.zip", "data.example.org", 443, "/a/b.zip", True),
        ("https://DATA.example.ORG./x", "data.example.org", 443, "/x", True),
        (" https://data.example.org ", "data.example.org", 443, "/", True),
        ("https://data.example.org:443/x?a=b&c#part", "data.example.org", 443, "/x?a=b&c", True),
        ("https://www.zenodo.org/x", "www.zenodo.org", 443, "/x", False),
        ("https://mirror.example.net:8443/x", "mirror.example.net", 8443, "/x", True),
        ("https://data.example.org/ä b%20c", "data.example.org", 443, "/%C3%A4%20b%20c", True),
    ],
)
def test_what_is_permitted(url: str, host: str, port: int, target: str, is_named: bool) -> None:
    assert RULES.source(url) == Source("https", host, port, target, is_named)


@pytest.mark.parametrize(
    "url",
    [
        "https://zenodo.org/x",
        "https://notzenodo.org/x",
        "https://www.zenodo.org.evil.example/x",
        "https://data.example.org:8443/x",
        "https://mirror.example.net/x",
        "https://127.0.0.1/x",
        "https://[::1]/x",
        "https://evil.example/data.example.org",
    ],
)
def test_hosts_that_are_not_permitted(url: str) -> None:
    assert refused(RULES, url) == (403, "host", "url")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x",
        "data.example.org/x",
        "ftp://data.example.org/x",
        "file:///etc/passwd",
        "https:///x",
        "https://data.example.org:99999/x",
        "https://data.example.org:x/x",
        "https://[::1/x",
        "https://me:secret@data.example.org/x",
        "https://@data.example.org/x",
        "http://data.example.org/x",
        "https://data.example.org/" + "x" * 9000,
    ],
)
def test_what_is_no_url_of_a_file(url: str) -> None:
    assert refused(RULES, url) == (422, "value", "url")


def test_it_is_off_by_default() -> None:
    assert refused(FetchRules(), "https://data.example.org/x") == (403, "host", "url")


def test_every_host_and_http() -> None:
    rules = FetchRules(("*",), http=True)
    assert rules.source("http://a.example/x") == Source("http", "a.example", 80, "/x", False)
    assert refused(rules, "https://a.example:8443/x") == (403, "host", "url")


@pytest.mark.parametrize(
    "address",
    "127.0.0.1 10.1.2.3 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 0.0.0.0 224.0.0.1 "
    "255.255.255.255 ::1 :: fe80::1 fe80::1%eth0 fc00::1 ff02::1 ::ffff:127.0.0.1 "
    "::ffff:10.0.0.1 2002:7f00:1::1".split(),
)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2001:4860:4860::8888", "::ffff:8.8.8.8"])
def test_addresses_that_are_public(address: str) -> None:
    assert is_public(address)
