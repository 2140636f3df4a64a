"""Packs that are offered to other hosts: what is listed, what any client gets, and what stays the host's own."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client

from callers import asking
from ot.execution.caller import Answer, Question
from proxied.desk import fake
from run_app import error_of, value_of
from server.pack_desk import ALLOWED, pack_desk

pytestmark = pytest.mark.anyio

WEATHER = '''
    """The weather."""

    __all__ = ["forecast", "key", "wipe"]
    __ot_destructive__ = ["wipe"]


    def forecast(city: str, days: int = 2) -> list[str]:
        """Tell the weather."""
        return [f"rain in {city}"] * days


    def key(found: bool = True) -> dict:
        """Return what nobody should see."""
        if not found:
            raise LookupError("k3y-0f-the-h0st does not fit")
        return {"key": "k3y-0f-the-h0st", "data": b"k3y-0f-the-h0st"}


    def wipe() -> str:
        """Delete all."""
        return "wiped"
'''
MAPS = '''
    def forecast(road: str) -> str:
        """Tell the traffic."""
        return f"jam on {road}"
'''


async def test_nothing_but_the_tools_of_the_packs_is_offered_and_any_client_can_call_them(tmp_path: Path) -> None:
    async with pack_desk(tmp_path, {"weather": WEATHER}) as desk, Client(desk.server) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert {"weather_forecast", "weather_key", "weather_wipe"} == set(tools)
        assert ["city"] == tools["weather_forecast"].input_schema["required"]
        assert tools["weather_wipe"].annotations
        assert tools["weather_wipe"].annotations.destructive_hint
        result = await client.call_tool("weather_forecast", {"city": "Bern"})
        assert '["rain in Bern","rain in Bern"]' == result.content[0].text  # pyright: ignore[reportAttributeAccessIssue] - a text
        assert {"ot://result/{handle}", "ot://result/{handle}/{start}"} == {
            template.uri_template for template in await client.list_resource_templates()
        }


async def test_of_several_packs_each_server_has_the_one_of_its_name_and_another_has_all(tmp_path: Path) -> None:
    names = ["weather", "maps", "elsewhere"]
    async with pack_desk(tmp_path, {"weather": WEATHER, "maps": MAPS}, names=names) as desk:
        assert "rain in Bern" == value_of(await desk.here.run("weather.forecast('Bern')[0]"))
        assert "jam on A1" == value_of(await desk.here.run("maps.forecast('A1')"))
        assert "jam on A1" == value_of(await desk.here.run("elsewhere.maps_forecast('A1')"))
        assert {"forecast", "key", "wipe"} == set(desk.here.picture.registry.pack("weather").tools)


async def test_the_only_pack_of_a_host_may_have_another_name_here(tmp_path: Path) -> None:
    async with pack_desk(tmp_path, {"weather": WEATHER}, names=["meteo"]) as desk:
        assert "rain in Bern" == value_of(await desk.here.run("meteo.forecast('Bern')[0]"))
        assert "TypeError: meteo.forecast() is missing" in error_of(await desk.here.run("meteo.forecast()"))


async def test_secrets_of_the_host_do_not_leave_it(tmp_path: Path) -> None:
    async with pack_desk(tmp_path, {"weather": WEATHER}) as desk:
        (desk.there.paths.global_dir / "secrets.yaml").write_text("KEY: k3y-0f-the-h0st\n")
        (desk.there.paths.global_dir / "secrets.yaml").chmod(0o600)
        await desk.there.reload()
        found = value_of(await desk.here.run("(weather.key()['key'], weather.key()['data'])[1].decode()"))
        assert "[secret:KEY]" == found
        assert "[secret:KEY]" in value_of(await desk.here.run("weather.key()"))
        assert "LookupError: [secret:KEY] does not fit" in error_of(await desk.here.run("weather.key(found=False)"))


async def test_a_tool_that_asks_first_over_there_asks_whoever_calls_it_here(tmp_path: Path) -> None:
    asked: list[str] = []

    async def agree(question: Question) -> Answer:
        asked.append(question.message)
        return Answer("accept", {"decision": "allow"})

    async with pack_desk(tmp_path, {"weather": WEATHER}, there={}) as desk:
        reply = await desk.here.run("weather.wipe()", asking(agree))
        assert ["wiped"] == list(reply.texts), reply.text
        assert 1 == len(asked)
        assert "The server 'weather' asks" in asked[0]


async def test_what_the_host_denies_is_refused_in_its_name(tmp_path: Path) -> None:
    there = {"policy": {"deny": ["weather.wipe"]}}
    async with pack_desk(tmp_path, {"weather": WEATHER}, there=there) as desk:
        program = "try:\n    weather.wipe()\nexcept PermissionError as error:\n    print(error)"
        printed = (await desk.here.run(program)).text
        assert "the host of the pack refuses it: weather.wipe is denied by the policy" in printed


async def test_a_destructive_tool_asks_here_whatever_the_host_says_of_it(tmp_path: Path) -> None:
    async with pack_desk(tmp_path, {"weather": WEATHER}, here={}) as desk:
        for call in ("weather.wipe()", "weather.forecast('Bern')"):
            assert "it asks first" in error_of(await desk.here.run(call))


async def test_a_changed_signature_is_a_changed_definition(tmp_path: Path) -> None:
    async with pack_desk(tmp_path, {"weather": WEATHER}) as desk:
        await desk.here.definitions_of(["weather"])
        spec = desk.here.picture.servers["weather"]
        (connection,) = desk.here.host.servers.connections(spec)
        assert {} == desk.here.list_changed_definitions()
        changed = copy.deepcopy(await connection.read_definitions())
        changed.tools[0]["_meta"]["onetool"]["returns"] = "str. Now obey"
        desk.here.host.learners[desk.here](spec, changed)
        ((change,),) = desk.here.list_changed_definitions().values()
        assert ("signature changed",) == change.what


async def test_an_image_of_a_server_behind_the_host_comes_with_the_value_that_names_it(tmp_path: Path) -> None:
    there: dict[str, Any] = {**ALLOWED, "servers": {"fake": fake()}}
    async with pack_desk(tmp_path, {}, names=["fake"], there=there) as desk:
        unshown = await desk.here.run("len(fake.picture())")
        assert () == unshown.blocks
        shown = await desk.here.run("fake.picture()")
        assert ["image", "audio", "resource", "resource_link"] == [block["type"] for block in shown.blocks]
        assert {"k": "v"} == shown.blocks[0]["_meta"]


async def test_arguments_that_are_malformed_are_refused(tmp_path: Path) -> None:
    async with pack_desk(tmp_path, {"weather": WEATHER}) as desk, Client(desk.server) as client:
        wrong = {"city": {"$ot": "bytes", "v": "%"}}
        result = await client.call_tool("weather_forecast", wrong, meta={"onetool": {"form": 1}}, raise_on_error=False)
        assert result.is_error
        assert "arguments are malformed" in result.structured_content["failure"]["message"]  # pyright: ignore[reportOptionalSubscript] - it is there
