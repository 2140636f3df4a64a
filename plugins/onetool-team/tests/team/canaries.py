"""Twenty people on one server, each with a canary in everything of theirs, and ways in which they look for others'."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import re
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from textwrap import dedent
from typing import Any

from fastmcp import FastMCP
from fastmcp.server.dependencies import get_http_headers

from http_server import call
from onetool_team.workspaces import PEOPLE, directory_name
from proxied.desk import http_server
from team.team_bed import TeamBed, principal, team

CANARY = re.compile(r"canary-[a-z0-9]+-[0-9a-f]{12}")
AT_ONCE = 24
PACK = '''
    from ot_sdk import secret

    __ot_requires__ = {"secrets": ["PACK_KEY"]}


    def whose() -> str:
        """Return whose key this worker has."""
        return secret("PACK_KEY").reveal().removeprefix("key-of-")


    def fail(*, word: str) -> str:
        """Fail, and say the word."""
        raise RuntimeError(f"as asked for {word}")
'''


def remote_server() -> FastMCP:
    """Return a server that knows its caller by the token in the request alone."""
    mcp = FastMCP("remote")

    def who() -> str:
        return get_http_headers(include={"authorization"})["authorization"].removeprefix("Bearer token-of-")

    @mcp.tool(annotations={"readOnlyHint": True})
    def whoami() -> str:  # pyright: ignore[reportUnusedFunction] - registered
        return who()

    @mcp.tool(annotations={"readOnlyHint": True}, output_schema=None)
    def table() -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction] - registered
        return {who(): 1}

    return mcp


@dataclass
class Person:
    """One of them, and what only this one may ever see."""

    name: str
    canary: str = ""
    handle: str = ""
    calls: int = 0
    has_own_key: bool = False
    seen: Counter[str] = field(default_factory=Counter[str])

    def __post_init__(self) -> None:
        self.canary = f"canary-{self.name}-{token_hex(6)}"


@dataclass
class Crowd:
    """All of them on one server."""

    bed: TeamBed
    people: list[Person]
    each: Path
    chance: random.Random
    runs: int = 0

    async def ask(self, person: Person, command: str, session: str = "") -> str:
        """Return what a run of *person* says, in which nobody else's canary may be."""
        request = call(command)
        request["params"]["arguments"] |= {"session": session} if session else {}
        meta = request["params"]["_meta"]
        info = {"name": f"client-{person.canary}", "version": "1"}
        request["params"]["_meta"] = {**meta, "io.modelcontextprotocol/clientInfo": info}
        self.runs += 1
        answered = await self.bed.post(person.name, request)
        self.look(person, answered.body.decode(), command)
        return answered.text

    async def refused(self, person: Person, command: str) -> str:
        """Return why *command* failed.

        Raises:
            AssertionError: It did not.
        """
        answered = await self.bed.post(person.name, call(command))
        self.runs += 1
        self.look(person, answered.body.decode(), command)
        assert answered.reply["result"]["isError"], f"{command}: {answered.text}"
        return answered.text

    def look(self, person: Person, text: str, where: str) -> None:
        """Take note of every canary in *text*.

        Raises:
            AssertionError: It is another's.
        """
        foreign = set(CANARY.findall(text)) - {person.canary}
        assert not foreign, f"{person.name} saw {foreign} by {where}"
        assert "operators-own" not in text, f"{person.name} saw a secret of the operator by {where}"

    def other(self, person: Person) -> Person:
        """Return somebody else."""
        return self.chance.choice([one for one in self.people if one is not person])

    def home_of(self, person: Person) -> Path:
        """Return where *person* works, which others can work out."""
        return self.each / directory_name(principal(person.name))

    # ---------------------------------------------------------------- what people do

    async def settle(self, person: Person) -> None:
        """Put the canary into everything of *person*'s."""
        await self.ask(person, f"mark = {person.canary!r}", session="work")
        await self.ask(person, f"file.write(path='note.txt', content={person.canary!r})")
        person.handle = json.loads(await self.ask(person, f"[{person.canary!r}] * 400"))["handle"]
        await self.ask(person, "remote.table()")
        await self.ask(person, f"keys.fail(word={person.canary!r})")

    async def own_session(self, person: Person) -> None:
        assert await self.ask(person, "mark", session="work") == person.canary

    async def own_file(self, person: Person) -> None:
        assert person.canary in await self.ask(person, "file.read(path='note.txt')")

    async def own_result(self, person: Person) -> None:
        text = await self.ask(person, f"ot.result(handle={person.handle!r}, limit=1)")
        assert person.canary in text

    async def own_token(self, person: Person) -> None:
        text = await self.ask(person, "remote.whoami()")
        assert text == person.canary, text

    async def own_key(self, person: Person) -> None:
        expected = person.canary if person.has_own_key else "everyone"
        text = await self.ask(person, "keys.whose()")
        assert text == expected, text

    async def own_statistics(self, person: Person) -> None:
        assert "file.write" in await self.ask(person, "ot.stats()")

    async def others_result(self, person: Person) -> None:
        other = self.other(person)
        text = await self.ask(person, f"ot.result(handle={other.handle!r})")
        assert "not found" in text

    async def others_resource(self, person: Person) -> None:
        uri = f"ot://result/{self.other(person).handle}"
        request = call("")
        request |= {"method": "resources/read", "params": {"uri": uri, "_meta": request["params"]["_meta"]}}
        answered = await self.bed.post(person.name, request)
        self.look(person, answered.body.decode(), uri)
        assert "error" in answered.reply

    async def others_session(self, person: Person) -> None:
        other = self.other(person)
        name = self.chance.choice([principal(other.name), f"{other.name}/work", f"../{other.name}/work", "work.."])
        await self.ask(person, "mark", session=name)
        await self.ask(person, "ot.session()")
        await self.ask(person, f"ot.session(name={name!r}, action='save')")

    async def others_file(self, person: Person) -> None:
        home = self.home_of(self.other(person))
        path = self.chance.choice([f"{home}/note.txt", f"../{home.name}/note.txt", f"{home}", f"sub/../../{home.name}"])
        verb = self.chance.choice(["read", "list", "tree", "search", "copy"])
        more = {"search": ", pattern='canary'", "copy": ", target='stolen.txt'"}.get(verb, "")
        name = "source" if verb == "copy" else "path"
        text = await self.ask(person, f"file.{verb}({name}={path!r}{more})")
        assert home.name not in text or "outside" in text or "rror" in text
        await self.ask(person, f"open({path!r}).read()")

    async def operators_files(self, person: Person) -> None:
        home = self.bed.home
        other = directory_name(principal(self.other(person).name))
        secrets = [f"{home}/secrets.yaml", f"{home}/{PEOPLE}/{other}/secrets.yaml"]
        path = self.chance.choice([*secrets, f"{home}/stats/stats.db", "/proc/self/environ"])
        await self.refused(person, f"file.read(path={path!r})")

    async def look_around(self, person: Person) -> None:
        asked = [
            "ot.health()", "ot.config()", "ot.tools(info='full', pattern='remote')", "ot.help(query='canary table')",
            "ot.help(query='remote.table', info='full')", "ot.packs(info='full')", "ot.stats(period='all')",
            "ot.session()", "ot.snippets(info='full')", "proj.list()", "dir()", "globals()", "vars()",
        ]  # fmt: skip
        await self.ask(person, self.chance.choice(asked))

    async def environment(self, person: Person) -> None:
        await self.ask(person, "import os\nstr(dict(os.environ))")
        await self.ask(person, "remote.whoami() + keys.whose()")

    async def change_what_is_shared(self, person: Person) -> None:
        path = str(self.bed.home.parent / "library" / "book.txt")
        assert "for all" in await self.ask(person, f"file.read(path={path!r})")
        await self.refused(person, f"file.write(path={path!r}, content='mine')")
        tried = self.chance.choice(["ot.reload()", "ot.notify(topic='notes', message='x')"])
        text = await self.refused(person, tried)
        assert "administrators" in text, text

    async def fail_loudly(self, person: Person) -> None:
        text = await self.ask(person, f"raise ValueError({person.canary!r})")
        assert person.canary in text

    async def one(self, person: Person) -> None:
        """Do whatever comes."""
        kinds: tuple[Callable[[Person], Awaitable[None]], ...] = (
            self.own_session, self.own_file, self.own_result, self.own_token, self.own_key, self.own_statistics,
            self.others_result, self.others_resource, self.others_session, self.others_file, self.operators_files,
            self.look_around, self.environment, self.change_what_is_shared, self.fail_loudly,
        )  # fmt: skip
        # Those that go through a worker, a server or the file of statistics take ten times as long.
        costly = (self.own_token, self.own_key, self.own_statistics, self.look_around, self.environment)
        kind = self.chance.choices(kinds, [1 if one in costly else 4 for one in kinds])[0]
        person.seen[kind.__name__] += 1
        await kind(person)

    async def settle_all(self) -> None:
        """Put everyone's canary into everything of theirs."""
        async with asyncio.TaskGroup() as group:
            for person in self.people:
                group.create_task(self.settle(person))

    async def mix(self, count: int) -> None:
        """Let whoever comes do whatever comes, many at a time, until there were *count* runs."""
        turns = itertools.cycle(self.people)

        async def go_on() -> None:
            while self.runs < count:
                await self.one(next(turns))

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(go_on())


def config_of(url: str, each: Path, library: Path, topics: Path) -> dict[str, Any]:
    """Return the operator's configuration."""
    remote = {"url": url, "headers": {"Authorization": "Bearer ${API_TOKEN}"}}
    quotas = {"in_flight": 1000, "waiting": 10_000, "runs_per_minute": 1_000_000}
    return {
        "servers": {"remote": remote},
        "http": {"workspaces": {"each": str(each), "shared": [str(library)]}, "quotas": quotas},
        "output": {"max_inline_size": 3000},
        "snippets": {"hello": {"body": "'hello'"}},
        "tools": {"msg": {"topics": [{"pattern": "notes", "file": str(topics)}]}},
    }


@asynccontextmanager
async def crowd(directory: Path, seed: int, count: int = 20) -> AsyncGenerator[Crowd]:
    """Yield *count* people on a server, with nothing done yet."""
    people = [Person(f"p{number}", has_own_key=number < 3) for number in range(count)]
    each, library = directory / "people", directory / "library"
    library.mkdir()
    (library / "book.txt").write_text("for all", encoding="utf-8")
    home = directory / "operator"
    _private(home / "secrets.yaml", {"API_TOKEN": "operators-own-token", "PACK_KEY": "key-of-everyone"})
    for person in people:
        own = {"API_TOKEN": f"token-of-{person.canary}"}
        own |= {"PACK_KEY": f"key-of-{person.canary}"} if person.has_own_key else {}
        _private(home / PEOPLE / directory_name(principal(person.name)) / "secrets.yaml", own)
    tools = home / "tools" / "keys"
    tools.mkdir(parents=True)
    (tools / "keys_tools.py").write_text(dedent(PACK), encoding="utf-8")
    async with (
        http_server(remote_server(), json_response=True) as (url, _),
        team(directory, config_of(url, each, library, directory / "topics.yaml")) as bed,
    ):
        yield Crowd(bed, people, each, random.Random(seed))


def _private(file: Path, secrets: Mapping[str, str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "w") as written:
        json.dump(secrets, written)
