"""README and tutorial, played word for word in fresh Debians, on the Pythons that the other tests do not run on.

The stable Debian is played whenever the tests run; the one that changes every day in the soak.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from console_blocks import typed_commands
from release.containers import PYTHONS, STABLE, ContainerWalk, require_containers
from walkthrough.walk import README, make_picture

pytestmark = [pytest.mark.containers, pytest.mark.timeout(600)]
TUTORIAL = {"first-program": "clone", "bring-your-servers": "servers", "first-pack": "pack"}
LONGEST = "bring-your-servers"
"""The page that starts servers of uv and npm; what the others show is in README, too, or is not of this Python."""


@pytest.fixture(
    scope="module",
    params=[suite if suite == STABLE else pytest.param(suite, marks=pytest.mark.soak) for suite in PYTHONS],
)
def walk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerWalk]:
    """A newcomer who has installed OneTool as the README says, in a Debian that was installed just now."""
    require_containers()
    begun = ContainerWalk(tmp_path_factory.mktemp("walk"), suite=request.param)
    try:
        begun.prepare()
        begun.play_readme(typed_commands(README)[0])
        yield begun
    finally:
        begun.remove()


def test_the_readme_does_what_it_says(walk: ContainerWalk) -> None:
    walk.play_readme(*typed_commands(README)[1:])
    assert walk.show(make_picture.COMMAND, walk.place / "shop").endswith("3 fixes are in your notes now\n")


@pytest.mark.parametrize(
    "page", [page if page == LONGEST else pytest.param(page, marks=pytest.mark.soak) for page in TUTORIAL]
)
def test_the_tutorial_does_what_it_says(walk: ContainerWalk, page: str) -> None:
    walk.forget_settings()
    place = walk.place / TUTORIAL[page]
    walk.run(f"mkdir -p {place}")
    assert walk.play(f"docs/tutorial/{page}.md", place) >= 8


def test_programs_run_in_the_exact_engine_and_bundled_packs_in_their_workers(
    walk: ContainerWalk, record_property: Callable[[str, object], None]
) -> None:
    engine = json.loads(walk.run("onetool run 'ot.health()[\"engine\"]'"))
    assert (engine["name"], engine["status"]) == ("exact", "ok")
    assert engine["python"].startswith(f"{PYTHONS[walk.suite]}.")
    assert [engine["layers"][layer].split(",")[0] for layer in ("seccomp", "landlock", "rlimits")] == ["on"] * 3
    found = walk.run(
        """onetool run 'rg.search(pattern="requires-python", path="clone/pyproject.toml")[0]["line"] > 0'"""
    )
    assert found.strip() == "true"
    record_property("walkthrough", walk.table())
