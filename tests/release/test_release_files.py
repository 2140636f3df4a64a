"""What publishes the project has the shape that it needs; none of it can run here."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from checkout import ROOT
from release.containers import PYTHONS
from release.installation import CLAIMED

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")
UNFINISHED = "the changelog is not ready for a release"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def workflow(name: str) -> dict[str, Any]:
    # `on` is a word for true in YAML 1.1, which a plain loader reads.
    return yaml.load((ROOT / ".github/workflows" / name).read_text(encoding="utf-8"), Loader=yaml.BaseLoader)


def steps(job: dict[str, Any]) -> list[str]:
    return [step.get("uses", "") or step.get("run", "") for step in job["steps"]]


# ---------------------------------------------------------------- the workflows


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_every_action_is_pinned_by_its_commit_and_says_which_version_that_is(file: Path) -> None:
    used = re.findall(r"uses: *(\S+)(.*)", file.read_text(encoding="utf-8"))
    assert used
    for action, comment in used:
        assert PINNED.fullmatch(action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), f"{action}: name its version behind it"


def test_a_release_is_built_from_a_tag_and_from_nothing_else() -> None:
    assert workflow("release.yml")["on"] == {"push": {"tags": ["v*"]}}
    first = [run for run in steps(workflow("release.yml")["jobs"]["build"]) if "uses" not in run]
    assert any('.ci/release_version "$GITHUB_REF_NAME"' in run for run in first)
    assert any(".ci/run" in run for run in first)
    assert any("cyclonedx-py" in run for run in first)
    assert any("pip-audit" in run for run in first)


def test_each_job_of_a_release_has_the_rights_that_it_needs_and_no_more() -> None:
    release = workflow("release.yml")
    rights = {name: job["permissions"] for name, job in release["jobs"].items()}
    assert release["permissions"] == {}
    assert rights == {
        "build": {"contents": "read"},
        "attest": {"attestations": "write", "id-token": "write"},
        "publish": {"id-token": "write"},
    }


def test_no_code_of_the_repository_runs_where_a_release_is_signed_or_published() -> None:
    jobs = workflow("release.yml")["jobs"]
    for name in ("attest", "publish"):
        assert not [step for step in jobs[name]["steps"] if "run" in step]
        assert not [step for step in steps(jobs[name]) if step.startswith("actions/checkout")]
    assert [job.get("needs") for job in jobs.values()] == [None, "build", "attest"]


def test_a_release_is_published_by_trusted_publishing_and_by_no_password() -> None:
    publish = workflow("release.yml")["jobs"]["publish"]
    assert publish["environment"]["name"] == "pypi"
    assert publish["steps"][-1]["uses"].startswith("pypa/gh-action-pypi-publish@")
    assert "with" not in publish["steps"][-1]
    assert "secrets." not in (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")


# ---------------------------------------------------------------- versions


def release_version(root: Path, *arguments: str) -> tuple[int, str]:
    script = [sys.executable, str(root / ".ci/release_version"), *arguments]
    done = subprocess.run(script, capture_output=True, text=True)
    return done.returncode, done.stderr.strip()


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    """A copy of the files that name the version, as they are when a release is made."""
    plugins = [file.relative_to(ROOT) for file in ROOT.glob("plugins/*/pyproject.toml")]
    for name in ("pyproject.toml", "server.json", ".ci/release_version", *plugins):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    notes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text(notes.replace("(unreleased)", "(2026-12-01)"), encoding="utf-8")
    (tmp_path / "changelog.d").mkdir()
    return tmp_path


def test_every_file_that_names_the_version_names_the_same() -> None:
    assert release_version(ROOT) == (0, "")


def test_a_plugin_that_wants_another_version_of_the_core_is_not_released(ready: Path) -> None:
    file = next(ready.glob("plugins/*/pyproject.toml"))
    file.write_text(file.read_text().replace("onetool-run==0.1.0", "onetool-run==0.0.9"))
    code, said = release_version(ready)
    assert (code, f"{file.relative_to(ready)}, its onetool-run says 0.0.9" in said) == (1, True)


def test_the_tag_of_that_version_is_released_and_another_is_refused(ready: Path) -> None:
    assert release_version(ready, f"v{PROJECT['version']}") == (0, "")
    code, said = release_version(ready, "v99.0.0")
    assert (code, "the tag says 99.0.0" in said) == (1, True)


def test_a_release_whose_changelog_is_unfinished_is_refused(ready: Path) -> None:
    (ready / "changelog.d/new.feature.md").write_text("New.\n")
    assert release_version(ready, "v0.1.0") == (1, f"{UNFINISHED}: changelog.d still holds new.feature.md")
    (ready / "changelog.d/new.feature.md").unlink()
    (ready / "CHANGELOG.md").write_text("## 0.1.0 (unreleased)\n")
    assert release_version(ready, "v0.1.0") == (1, f"{UNFINISHED}: its newest release has no date")


# ---------------------------------------------------------------- the Pythons


def test_the_pythons_of_the_metadata_are_those_that_are_tested_and_named() -> None:
    start = "Programming Language :: Python :: "
    assert [text.removeprefix(start) for text in PROJECT["classifiers"] if text.startswith(start)] == CLAIMED
    assert f"for version in {' '.join(CLAIMED)}; do" in (ROOT / ".ci/setup").read_text(encoding="utf-8")
    assert [job["strategy"]["matrix"]["python"] for job in workflow("check.yml")["jobs"].values()] == [CLAIMED] * 2
    assert sorted({"3.12", *PYTHONS.values()}) == CLAIMED
    (package,) = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))["packages"]
    assert [argument["value"] for argument in package["runtimeArguments"]] == [PROJECT["requires-python"]]
    named = f"Python {', '.join(CLAIMED[:-1])} or {CLAIMED[-1]}"
    for page in ("README.md", "docs/index.md", "docs/tutorial/first-program.md"):
        assert named in (ROOT / page).read_text(encoding="utf-8"), page


# ---------------------------------------------------------------- the registry's entry


def test_the_registrys_entry_starts_the_server_over_stdio_from_the_index() -> None:
    entry = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
    (package,) = entry["packages"]
    assert entry["$schema"] == "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
    assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+/[A-Za-z0-9._-]+", entry["name"])
    assert 1 <= len(entry["description"]) <= 100
    assert (package["registryType"], package["identifier"]) == ("pypi", PROJECT["name"])
    assert package["transport"] == {"type": "stdio"}
    # uvx runs the command that is called as the distribution is.
    assert package["identifier"] in PROJECT["scripts"]
    assert [argument["value"] for argument in package["packageArguments"]] == ["serve"]


def test_the_readme_proves_to_the_registry_whose_package_it_is() -> None:
    name = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))["name"]
    assert re.findall(r"mcp-name: (\S+)", (ROOT / "README.md").read_text(encoding="utf-8")) == [name]


# ---------------------------------------------------------------- the container


def instructions() -> list[tuple[str, str]]:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def test_the_container_runs_the_installed_wheel_as_a_user_without_rights() -> None:
    build, final = [index for index, (word, _) in enumerate(instructions()) if word == "FROM"]
    last = instructions()[final:]
    words = [word for word, _ in last]
    assert [word for word, _ in instructions()[:build]] == ["ARG"]
    assert {rest.split()[0] for word, rest in instructions() if word == "FROM"} == {"${BASE}"}
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert dict(last)["USER"] not in ("root", "0")
    assert (dict(last)["ENTRYPOINT"], dict(last)["CMD"]) == ('["onetool"]', '["serve"]')
    assert [rest for word, rest in last if word in ("COPY", "ADD")] == ["--from=build /opt/onetool /opt/onetool"]


def test_the_container_is_built_from_files_that_exist_and_are_sent_to_it() -> None:
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {name for word, rest in instructions() if word == "COPY" and "--from" not in rest for name in rest.split()}
    assert copied - {"./"} == sent
    assert all((ROOT / name).exists() for name in sent)


def test_the_container_takes_the_uv_that_the_project_asks_for() -> None:
    (wanted,) = [text for text in PROJECT["dependencies"] if text.startswith("uv>")]
    assert [rest for word, rest in instructions() if word == "RUN" and rest.endswith(f" '{wanted}'")]


# ---------------------------------------------------------------- for contributors


@pytest.mark.parametrize("file", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")), ids=lambda file: file.name)
def test_an_issue_form_has_what_the_host_asks_of_it(file: Path) -> None:
    form = yaml.safe_load(file.read_text(encoding="utf-8"))
    if file.name == "config.yml":
        assert form == {"blank_issues_enabled": True}
        return
    assert form["name"]
    assert form["description"]
    fields = [entry for entry in form["body"] if entry["type"] != "markdown"]
    assert all(entry["attributes"]["label"] and entry["id"] for entry in fields)
    assert len({entry["id"] for entry in fields}) == len(fields) > 0


def test_no_page_for_contributors_names_an_address_to_write_to() -> None:
    for name in ("SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", ".github/pull_request_template.md"):
        assert not re.search(r"[\w.+-]+@[\w-]+\.\w+", (ROOT / name).read_text(encoding="utf-8")), name
