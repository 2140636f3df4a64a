"""Users of a team's server log in to a proxied server: in their own browser, for themselves, and once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oauth.authorization_server import LoopbackAuthorizationServer
from oauth.browserless_user import query_of
from oauth.resource_server import LoopbackResourceServer
from onetool_team.logins import pending_logins
from onetool_team.logins.pending_logins import PendingLogin
from onetool_team.logins.routes import _start_page  # pyright: ignore[reportPrivateUsage] - no login gets that far
from onetool_team.state.memory_state import MemoryState
from onetool_team.state.redis_state import RedisState
from onetool_team.state.shared_state import SharedState
from pace import PATIENCE
from state.redis_process import running_redis
from team.logins.login_bed import PUBLIC, Invited, LoginBed, login_bed

pytestmark = pytest.mark.anyio

ECHO = "guarded.echo(text='hello')"
BOTH = tuple[SharedState, SharedState]
LIVES_SECONDS = 2.5
"""Of a login that is tried in vain: longer than the tries, also on a busy machine."""


class OpensAtOnce(Invited):
    """Logs in before agreeing, as somebody who is quick."""

    def __init__(self, bed: LoginBed) -> None:
        super().__init__()
        self._bed = bed
        self.last = ""

    async def __call__(self, *given: Any) -> Any:
        answer = await super().__call__(*given)
        async with self._bed.browser() as browser:
            self.last = (await browser.log_in(self.link, self.code)).text
        return answer


async def test_a_user_logs_in_at_any_replica_and_the_run_goes_on(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, states: BOTH
) -> None:
    async with login_bed(tmp_path, resource, *states) as bed:
        async with bed.waiting("ann", ECHO) as (invited, running), bed.browser() as browser:
            assert invited.link.startswith(f"{PUBLIC}/oauth/start?login=")
            last = await browser.log_in(invited.link, invited.code)
            assert (last.status_code, "You are logged in" in last.text) == (200, True)
            assert await running == ("hello", False)
        assert await bed.run("ann", ECHO) == ("hello", False)
        said, failed = await bed.run("bob", ECHO)
        assert failed
        assert "login needed" in said
    assert issuer.counts["logins"] == 1


async def test_a_browser_may_be_back_before_the_client_agrees(
    tmp_path: Path, resource: LoopbackResourceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending_logins, "OUTCOME_SECONDS", 0.1)
    state = MemoryState()
    async with login_bed(tmp_path, resource, state, state) as bed:
        quick = OpensAtOnce(bed)
        assert await bed.run("ann", ECHO, quick) == ("hello", False)
    assert "Go back to your client" in quick.last


async def test_an_address_that_nobody_opens_ends_at_the_deadline_and_is_worth_nothing_then(
    tmp_path: Path, resource: LoopbackResourceServer, states: BOTH
) -> None:
    async with login_bed(tmp_path, resource, *states, seconds=1.0) as bed, bed.browser() as browser:
        invited = Invited()
        said, failed = await bed.run("ann", ECHO, invited)
        assert failed
        assert "nobody finished it in the browser in time" in said
        late = await browser.get(invited.link)
        assert (late.status_code, "This login is over" in late.text) == (404, True)
        assert (await browser.submit(invited.link, invited.code)).status_code == 404


async def test_a_link_and_an_answer_are_each_for_one_use(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, states: BOTH
) -> None:
    async with (
        login_bed(tmp_path, resource, *states) as bed,
        bed.waiting("ann", ECHO) as (invited, running),
        bed.browser() as browser,
    ):
        looked = [(await browser.get(invited.link)).status_code for _ in range(3)]
        assert looked == [200, 200, 200]  # whoever previews addresses takes nothing away
        left = await browser.submit(invited.link, invited.code)
        assert (await browser.submit(invited.link, invited.code)).status_code == 404
        back = (await browser.get(left.headers["location"])).headers["location"]
        cookies = {cookie.name: cookie.value or "" for cookie in browser.cookies.jar}
        assert (await browser.get(back)).status_code == 200
        again = await browser.get(back, headers={"cookie": "; ".join(f"{k}={v}" for k, v in cookies.items())})
        assert (again.status_code, "Not your login" in again.text) == (403, True)
        assert await running == ("hello", False)
    assert issuer.counts["logins"] == 1


async def test_who_has_the_link_but_not_the_code_gets_nowhere(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, states: BOTH
) -> None:
    async with login_bed(tmp_path, resource, *states, seconds=LIVES_SECONDS) as bed:
        async with bed.waiting("ann", ECHO) as (invited, running), bed.browser("victim") as browser:
            tries = [await browser.submit(invited.link, wrong) for wrong in ("", "222-222", "333-333")]
            assert [page.status_code for page in tries] == [403, 403, 404]
            assert "2 tries are left" in tries[0].text
            assert (await browser.submit(invited.link, invited.code)).status_code == 404
            said, failed = await running
        assert failed
        assert "in time" in said
    assert issuer.counts["logins"] == 0


async def test_who_was_sent_the_address_of_the_authorization_server_connects_nothing(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, states: BOTH
) -> None:
    async with login_bed(tmp_path, resource, *states, seconds=LIVES_SECONDS) as bed:
        async with bed.waiting("mallory", ECHO) as (invited, running):
            async with bed.browser("mallory") as own, bed.browser("victim") as other:
                left = await own.submit(invited.link, invited.code)
                answer = (await other.get(left.headers["location"])).headers["location"]
                made_up = {"cookie": f"{left.headers['set-cookie'].partition('=')[0]}=made-up"}
                for headers in ({}, made_up):
                    ended = await other.get(answer, headers=headers)
                    assert (ended.status_code, "Not your login" in ended.text) == (403, True)
            said, failed = await running
        assert failed
        assert "in time" in said
    assert resource.calls["echo"] == 0


async def test_who_is_sent_somebody_s_answer_is_not_logged_in_as_them(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, states: BOTH
) -> None:
    async with (
        login_bed(tmp_path, resource, *states) as bed,
        bed.waiting("mallory", ECHO) as (theirs, _),
        bed.waiting("ann", ECHO) as (hers, running),
        bed.browser("mallory") as own,
        bed.browser("ann") as other,
    ):
        left = await own.submit(theirs.link, theirs.code)
        answer = (await own.get(left.headers["location"])).headers["location"]
        gone = await other.submit(hers.link, hers.code)
        assert (await other.get(answer)).status_code == 403
        mixed = answer.replace(query_of(answer)["state"], query_of(gone.headers["location"])["state"])
        # In the right browser, but with another login's code: the authorization server refuses it.
        refused = await other.get(mixed)
        assert (refused.status_code, "You are not logged in" in refused.text) == (502, True)
        said, failed = await running
        assert failed
        assert "login needed" in said


async def test_no_other_site_sends_the_form(tmp_path: Path, resource: LoopbackResourceServer) -> None:
    state = MemoryState()
    async with (
        login_bed(tmp_path, resource, state, state) as bed,
        bed.waiting("ann", ECHO) as (invited, _),
        bed.browser() as browser,
    ):
        for origin in ("https://evil.example", "null", "", f"{PUBLIC}:8443", PUBLIC.replace("https", "http")):
            page = await browser.submit(invited.link, invited.code, origin)
            assert page.status_code == 403, origin
            assert "set-cookie" not in page.headers
        assert (await browser.submit(invited.link, invited.code)).is_redirect


async def test_pages_are_kept_nowhere_framed_nowhere_and_run_nothing(
    tmp_path: Path, resource: LoopbackResourceServer
) -> None:
    state = MemoryState()
    async with (
        login_bed(tmp_path, resource, state, state) as bed,
        bed.waiting("ann", ECHO) as (invited, _),
        bed.browser() as browser,
    ):
        start = await browser.get(invited.link)
        left = await browser.submit(invited.link, invited.code)
        missing = await browser.get(f"{PUBLIC}/oauth/start")
        refused = await browser.get(f"{PUBLIC}/oauth/callback?state=x&code=y")
    assert (missing.status_code, refused.status_code) == (404, 403)
    for page in (start, left, missing, refused):
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["x-frame-options"] == "DENY"
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert page.headers["referrer-policy"] == ("same-origin" if page is start else "no-referrer")
        assert "<script" not in page.text
    cookie = left.headers["set-cookie"]
    assert cookie.startswith("__Host-onetool-login-")
    assert all(part in cookie for part in ("; HttpOnly", "; Secure", "; SameSite=lax", "; Path=/", "; Max-Age=600"))
    assert "Domain" not in cookie


async def test_without_a_public_address_nothing_is_begun(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
) -> None:
    state = MemoryState()
    async with login_bed(tmp_path, resource, state, state, public_url="") as bed:
        said, failed = await bed.run("ann", ECHO, Invited())
    assert failed
    assert "http.public_url" in said
    assert issuer.counts["registrations"] == 0


@pytest.mark.parametrize(("era", "invited"), [("auto", None), ("legacy", Invited())], ids=["unable", "handshake era"])
async def test_a_client_that_cannot_be_asked_is_told_what_would(
    tmp_path: Path,
    issuer: LoopbackAuthorizationServer,
    resource: LoopbackResourceServer,
    era: str,
    invited: Invited | None,
) -> None:
    state = MemoryState()
    async with login_bed(tmp_path, resource, state, state) as bed:
        said, failed = await bed.run("ann", ECHO, invited, era)
    assert failed
    assert "use a client that can show you an address to open" in said
    assert "onetool auth login" not in said
    assert issuer.counts["registrations"] == 0


async def test_without_what_replicas_share_pages_say_so_and_the_run_is_told(
    tmp_path: Path, resource: LoopbackResourceServer
) -> None:
    with running_redis() as process:
        here, there = (RedisState(process.url, answer_seconds=PATIENCE) for _ in range(2))
        async with (
            login_bed(tmp_path, resource, here, there) as bed,
            bed.waiting("ann", ECHO) as (invited, running),
            bed.browser() as browser,
        ):
            process.kill()
            page = await browser.get(invited.link)
            assert (page.status_code, "Try again in a minute" in page.text) == (503, True)
            said, failed = await running
            assert failed
            assert "what the replicas of this server share cannot be reached" in said
        for state in (here, there):
            await state.aclose()


def test_the_page_names_where_the_browser_goes_and_nothing_that_only_looks_like_it() -> None:
    address = "https://accounts.google.example@127.0.0.1:17010/authorize?state=s"
    page = _start_page(PendingLogin("guarded", "issuer|ann", address, "s", "c"))
    assert b"127.0.0.1:17010" in page.body and b"google" not in page.body
