"""The page opens on a real server, asks nobody else, and is offered to no other host."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlsplit

import httpx

from explorer.browser.running import Running
from explorer.browser.sight import Sight


def test_one_url_is_printed_and_the_page_shows_plans_soon(server: Running, sight: Callable[..., Sight]) -> None:
    """Check 1. How long it takes is for the benchmark to say."""
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", server.url)
    seen = sight()
    seen.page.locator(".nobody .offer").nth(3).wait_for()  # three people, and values of one's own
    assert seen.page.evaluate("document.activeElement.id") == "picker"
    seen.offered()
    assert seen.plans()
    assert seen.errors == []


def test_no_request_leaves_and_the_policy_is_strict(server: Running, sight: Callable[..., Sight]) -> None:
    """Check 2."""
    seen = sight()
    seen.offered()
    seen.page.get_by_role("button", name="Many people").click()
    seen.page.get_by_role("button", name="Count", exact=True).click()
    seen.page.get_by_text("people have a plan").wait_for()
    own = urlsplit(server.url).netloc
    assert len(seen.requests) > 5
    assert {urlsplit(one.url).netloc for one in seen.requests if urlsplit(one.url).scheme not in ("data", "blob")} == {
        own
    }
    policy = httpx.get(server.url, trust_env=False).headers["content-security-policy"]
    for rule in ("default-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
        assert rule in policy
    assert "unsafe" not in policy
    assert seen.errors == []


def test_other_hosts_types_and_sizes_are_refused_and_nothing_is_logged(server: Running) -> None:
    """Check 30."""
    url, body = f"{server.url}api/model", b"{}"
    kind = {"Content-Type": "application/json"}
    secret = "Xanthippe-4711"
    with httpx.Client(trust_env=False) as http:
        assert http.post(url, content=body, headers=kind).status_code == 200
        assert http.post(url, content=body, headers={**kind, "Host": "evil.example"}).status_code == 400
        assert http.post(url, content=body, headers={"Content-Type": "text/plain"}).status_code == 415
        assert http.post(url, content=b" " * 2_000_000, headers=kind).status_code == 413
        told = http.post(f"{server.url}api/ask", json={"values": {"age": secret}, "person": None, "target": None})
        assert 400 <= told.status_code < 500
    assert secret not in server.log.read_text(encoding="utf-8")
