"""What installed plugins bring is read once, without importing it, and nothing of ours names a plugin."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from checkout import PACKS, PLUGINS, ROOT
from cli.command import OneTool
from ot import extras, hooks, stores
from ot.cli.command_table import OURS, all_commands, read_rows
from ot.cli.diagnosis.setup import plugin_findings
from ot.config.load import load_config
from ot.config.project_rules import project_rule
from ot.config.sections import SettingsInvalid, read_settings, unused_sections
from ot.config.trust import Trust
from ot.errors import ConfigError
from run_app import paths_in, running_app, value_of

ROWS = """
# rows of a plugin
[wave]
group = Everyday
function = waving.cli:wave
summary = Wave at somebody.
example = onetool wave Ada

[run]
function = waving.cli:wave
summary = Take the place of our own.

[nothing]
summary = Has no function.
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path, as packages are installed into it; nothing else has hooks."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    every = hooks._folders
    monkeypatch.setattr(hooks, "_folders", lambda: [found for found in every() if found.startswith(str(folder))])
    monkeypatch.setattr(hooks, "_read", {})
    return folder


def install(site: Path, entry_points: str, distribution: str = "waving", **files: str) -> None:
    info = site / f"{distribution}-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(entry_points)
    package = site / distribution
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('must not be imported')" if "imported" in files else "")
    for name, text in files.items():
        (package / name.replace("_", ".")).write_text(text)


def test_hooks_are_found_by_group_and_loaded_when_asked(site: Path) -> None:
    install(site, "[console_scripts]\nx = y:z\n\n[onetool.stores]\nresults.memo = json:dumps\n[onetool.packs]\na = b\n")
    (hook,) = hooks.hooks(hooks.STORES)
    assert (hook.distribution, hook.name, hook.module, hook.attribute) == ("waving", "results.memo", "json", "dumps")
    assert hook.load()([1]) == "[1]"
    assert hooks.packages() == ["b", "json"]


def test_a_plugin_that_is_installed_meanwhile_is_found(site: Path) -> None:
    assert hooks.hooks(hooks.PACKS) == []
    install(site, "[onetool.packs]\na = b\n")
    assert [hook.name for hook in hooks.hooks(hooks.PACKS)] == ["a"]


def test_a_path_is_read_once(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks.hooks(hooks.PACKS)
    monkeypatch.setattr(hooks, "_all_hooks", lambda: pytest.fail("it was read again"))
    assert hooks.hooks(hooks.STORES) == []


# ---------------------------------------------------------------- commands


def test_commands_of_plugins_stand_below_ours_and_take_no_name_of_ours(site: Path) -> None:
    ours = all_commands()
    install(site, "[onetool.commands]\nwave = waving\n", imported="", commands_ini=ROWS)
    commands = all_commands()
    assert commands["Everyday"][-1] == ("wave", "waving.cli:wave", "Wave at somebody.", "onetool wave Ada")
    assert [row for rows in commands.values() for row in rows if row[0] in ("run", "nothing")] == [
        row for rows in ours.values() for row in rows if row[0] == "run"
    ]


def test_a_plugin_whose_rows_are_missing_has_no_commands(site: Path) -> None:
    ours = all_commands()
    install(site, "[onetool.commands]\nwave = waving\n", imported="")
    assert all_commands() == ours


def test_a_command_that_an_extra_brings_is_said_to(site: Path, onetool: OneTool) -> None:
    ended = onetool("chat")
    assert ended.code == 1
    assert ended.err.startswith("onetool: onetool chat needs more than the plain installation: uv ")
    assert onetool("wave").code == 2


# ---------------------------------------------------------------- settings

WAVING = '''
from pydantic import BaseModel, ConfigDict, Field


class Waving(BaseModel):
    """How hands are waved."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    times: int = Field(default=3, ge=1, description="How often")
'''


def test_a_section_of_a_plugin_is_checked_by_its_own_model(site: Path) -> None:
    install(site, "[onetool.settings]\nwaving = waving.settings:Waving\n", settings_py=WAVING)
    config = read_settings({"waving": {"times": 5}})
    from waving.settings import Waving  # pyright: ignore[reportMissingImports] - it is installed by this test

    assert config.section(Waving).times == 5
    assert read_settings({"waving": None}).section(Waving).times == read_settings({}).section(Waving).times == 3
    assert config != read_settings({})
    with pytest.raises(SettingsInvalid) as refused:
        read_settings({"waving": {"times": 0}, "limits": {"calls": 0}})
    assert [details["loc"] for details in refused.value.details] == [("limits", "calls"), ("waving", "times")]
    assert project_rule(("waving", "times")) == "only the user's own configuration may set it"
    sys.modules.pop("waving")
    sys.modules.pop("waving.settings")


def test_a_model_is_imported_where_its_section_is_written(site: Path) -> None:
    install(site, "[onetool.settings]\nwaving = waving.settings:Waving\n", settings_py="raise RuntimeError('broken')")
    read_settings({})
    with pytest.raises(ConfigError, match="waving, which has the settings 'waving', cannot be imported: RuntimeError"):
        read_settings({"waving": {}})
    sys.modules.pop("waving")


def test_a_section_whose_extra_is_missing_is_passed_over_and_any_other_is_an_error(site: Path) -> None:
    assert read_settings({"chat": {"provider": "ollama"}}) == read_settings({})
    assert unused_sections({"chat": {}, "limits": {}}) == {"chat": "chat"}
    with pytest.raises(SettingsInvalid):
        read_settings({"waving": {}})


# ---------------------------------------------------------------- stores


def test_a_store_that_is_not_there_says_what_to_install(site: Path) -> None:
    with pytest.raises(ConfigError, match=r"a model needs more than the plain installation \(uv .*chat"):
        stores.load_store("language_model", "a model")
    with pytest.raises(ConfigError, match=r"x cannot be used: nothing that is installed offers 'results.memo'"):
        stores.load_store("results.memo", "x")
    install(site, "[onetool.stores]\nresults.memo = waving_gone:Memo\n")
    with pytest.raises(ConfigError, match="x cannot be used: waving cannot be imported: No module"):
        stores.load_store("results.memo", "x")


# ---------------------------------------------------------------- observers

COUNTER = """
class Calls:
    def __init__(self):
        self.seen = []

    def finished(self, call):
        self.seen.append(call.tool)
        raise RuntimeError("a fault of the plugin")


def broken():
    raise RuntimeError("cannot be made")
"""


@pytest.mark.anyio
async def test_an_observer_is_told_of_calls_and_its_faults_end_no_run(
    site: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = "[onetool.observers]\ncalls = waving.observer:Calls\nbroken = waving.observer:broken\n"
    install(site, made, observer_py=COUNTER)
    async with running_app(tmp_path, {}) as app:
        assert value_of(await app.run("len(ot.packs()) > 0")) == "true"
        (observer,) = app.host.watchers.calls
    sys.modules.pop("waving")
    sys.modules.pop("waving.observer")
    assert observer._observer.seen == ["ot.packs"]  # pyright: ignore[reportAttributeAccessIssue] - it is ours here
    said = [record.message for record in caplog.records]
    assert "the observer broken of waving cannot be used" in said
    assert "the observer calls failed" in said


# ---------------------------------------------------------------- findings


@pytest.mark.anyio
async def test_what_a_plugin_found_out_is_told_and_its_faults_are_findings(site: Path, tmp_path: Path) -> None:
    made = "async def look(loaded):\n    return [('state', bool(loaded))]\n"
    install(site, "[onetool.findings]\nlook = waving.findings:look\nbad = waving.gone:look\n", findings_py=made)
    paths = paths_in(tmp_path, {})
    found = await plugin_findings(load_config(paths, Trust(paths.global_dir)))
    assert ("state", True) in found
    assert any("waving could not be looked at: ModuleNotFoundError" in getattr(one, "text", "") for one in found)
    sys.modules.pop("waving")
    sys.modules.pop("waving.findings")


# ---------------------------------------------------------------- the rule


def test_nothing_in_the_source_names_a_plugin() -> None:
    names = {name for plugin in PLUGINS for name in (plugin.name, plugin.name.replace("-", "_"))}
    assert names
    every = [file for folder in (ROOT / "src", PACKS) for file in folder.rglob("*")]
    files = [file for file in every if file.suffix in (".py", ".yaml", ".toml", ".ini", ".md")]
    found = re.compile("|".join(sorted(names)))
    assert [str(file) for file in files if found.search(file.read_text(encoding="utf-8"))] == []


def test_every_extra_that_is_named_exists_and_brings_what_is_said() -> None:
    from tomllib import loads

    known = loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = (extras.COMMANDS, extras.EDGES, extras.SECTIONS, extras.STORES)
    assert {extra for each in named for extra in each.values()} <= known.keys()
    assert extras.EDGES.keys() == {hook.name for hook in hooks.hooks(hooks.EDGES)}
    every = {row[0].split()[0] for rows in all_commands().values() for row in rows}
    assert extras.COMMANDS.keys() == every - {name.split()[0] for name in read_rows(OURS)}
    assert extras.SECTIONS.keys() <= {hook.name for hook in hooks.hooks(hooks.SETTINGS)}
    assert extras.STORES.keys() <= {hook.name for hook in hooks.hooks(hooks.STORES)}
