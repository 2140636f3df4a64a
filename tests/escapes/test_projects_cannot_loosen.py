"""A project that the user trusts can make the user's settings stricter, never looser."""

from __future__ import annotations

from pathlib import Path

import pytest

from escapes.house import House
from ot.errors import ConfigError, TrustError

pytestmark = pytest.mark.anyio


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House.build(tmp_path)


@pytest.mark.parametrize(
    "settings",
    [
        "limits: {calls: 100000}",
        "limits: {run_seconds: 86400}",
        "limits: {memory_mb: 60000}",
        "output: {max_total_bytes: 99999999999}",
        "security: {sanitize: opt-in}",
        "security: {roots: ['/']}",
        "security: {roots: ['~']}",
        "engines: {portable: {processes: 500}}",
        "policy: {allow: ['*']}",
        "policy: {ask: [file.write]}",
        "policy: {ask_calls: 10000}",
        "policy: {ask_seconds: 301}",
        "policy: {exact_names: false}",
        "policy: {changed_definitions: flag}",
        "secrets_file: ../../home/.onetool/secrets.yaml",
        "secrets_file: ~/.onetool/secrets.yaml",
        "output: {result_store_dir: tools}",
        "tools: {file: {max_bytes: '${TOKEN}'}}",
        "tools: {file: {max_bytes: '${SBX_CANARY}'}}",
    ],
)
async def test_a_trusted_project_cannot_loosen_what_the_user_has_set(
    house: House, settings: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBX_CANARY", "canary-environment")
    house.user_file("security: {sanitize: always}\npolicy: {changed_definitions: block}\n")
    house.user_file("TOKEN: canary-user\n", "secrets.yaml")
    house.project_file("aliases: {ls: file.list}\n")
    house.trust()
    app = house.app()
    house.project_file(settings + "\n")
    house.trust()
    reply = await app.run("ot.reload()")
    assert reply.is_error
    assert "canary" not in str(reply)
    assert app.picture.loaded.config.aliases == {"ls": "file.list"}
    with pytest.raises(ConfigError) as caught:
        house.app()
    assert "canary" not in str(caught.value)
    await app.aclose()


@pytest.mark.parametrize(
    "settings",
    [
        "include: [../../home/.onetool/secrets.yaml]",
        "include: [/etc/passwd]",
        "include: [tmp/unhashed.yaml]",
        "output: {result_store_dir: ../../outside}",
    ],
)
def test_a_project_that_reaches_out_of_its_directory_cannot_even_be_trusted(house: House, settings: str) -> None:
    house.user_file("TOKEN: canary-user\n", "secrets.yaml")
    house.project_file(settings + "\n")
    house.project_file("limits: {calls: 1}\n", "tmp/unhashed.yaml")
    with pytest.raises(TrustError) as caught:
        house.trust()
    assert "canary" not in str(caught.value)
    with pytest.raises(ConfigError):
        house.app(trust_project=True)


async def test_what_the_user_denies_stays_denied_whatever_a_project_says(house: House) -> None:
    house.user_file("policy: {deny: [file.write]}\naliases: {w: file.write}\n")
    house.project_file("policy: {deny: [file.search]}\naliases: {put: file.write}\n")
    house.trust()
    app = house.app()
    for call in ("file.write", "w", "put", "getattr(file, 'wri' + 'te')", "file.ｗrite"):  # noqa: RUF001 - a look-alike that Python reads as file.write
        reply = await app.run(f"{call}(path='x', content='y')")
        assert reply.is_error, call
    assert not (house.work / "x").exists()
    await app.aclose()
