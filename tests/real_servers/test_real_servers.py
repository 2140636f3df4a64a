"""Published servers as packs, all at once, in programs that a client sends over the wire."""

from __future__ import annotations

import base64
import http.server
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faults.wire_eras import ERAS
from mcp_wire import WireReply
from real_servers.real_house import git_repository, house
from server.asked_talk import YES, AskedTalk
from server_process import process_tree
from workers.process_watch import assert_gone, command

pytestmark = pytest.mark.timeout(400)  # the first time on a machine, the servers are installed

NAMES = ("everything", "filesystem", "memory", "git", "time", "fetch")
STARTED = 90.0
"""Six interpreters start at once, two of them below a launcher."""

ALL_TOGETHER = """
import asyncio
now, weather, page = await asyncio.gather(
    time.get_current_time(timezone="UTC"),
    everything.get_structured_content(location="Chicago"),
    fetch.fetch(url="{url}"),
)
filesystem.write_file(path="{repo}/weather.txt", content=f"{{weather['conditions']}}\\n")
git.git_add(repo_path="{repo}", files=["weather.txt"])
git.git_commit(repo_path="{repo}", message="Weather of Chicago")
log = git.git_log(repo_path="{repo}", max_count=5)
memory.create_entities(entities=[{{"name": "chicago", "entityType": "city", "observations": [weather["conditions"]]}}])
graph = memory.read_graph()
read = filesystem.read_text_file(path="{repo}/weather.txt")
{{
    "zone": now["timezone"], "temperature": weather["temperature"], "page": "a page for the tests" in page,
    "log": log,
    "known": [entity["name"] for entity in graph["entities"]], "read": read,
}}
"""


@pytest.fixture(scope="module", params=ERAS)
def talk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AskedTalk]:
    """A conversation with OneTool that has all of the servers, once an era."""
    root = tmp_path_factory.mktemp("real")
    allowed = ["filesystem.*", "git.git_add", "git.git_commit", "memory.create_entities", "everything.*"]
    with house(root, NAMES, request.param, policy={"allow": allowed}) as talk:
        yield talk


@pytest.fixture(scope="module")
def page() -> Iterator[str]:
    """The address of a page on this machine."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b"<html><body><article><h1>Hello</h1><p>This is a page for the tests.</p></article></body></html>"
            self.send_response(200 if self.path == "/page" else 404)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(body if self.path == "/page" else b"")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/page"
    server.shutdown()
    server.server_close()


def value(reply: WireReply) -> Any:
    assert not reply.is_error, reply.text
    return json.loads(reply.texts[0])


def run(talk: AskedTalk, command: str, **more: Any) -> WireReply:
    return talk.wire.wait(talk.send(command, **more), STARTED)


def blocks(reply: WireReply) -> list[dict[str, Any]]:
    return [block for block in reply.result["content"] if block["type"] != "text"]


def test_six_servers_work_together_in_one_program(talk: AskedTalk, page: str) -> None:
    repository = git_repository(talk.where.cwd)
    found = value(run(talk, ALL_TOGETHER.format(url=page, repo=repository)))
    assert (found["zone"], found["page"], found["known"]) == ("UTC", True, ["chicago"])
    assert isinstance(found["temperature"], int | float)
    assert "Weather of Chicago" in found["log"]
    assert "The first change" in found["log"]
    written = (repository / "weather.txt").read_text()
    assert found["read"] == {"content": written}
    assert written.strip()


def test_images_links_and_resources_reach_the_client_and_a_program_gets_a_word_for_them(talk: AskedTalk) -> None:
    reply = run(talk, "[everything.get_tiny_image()[1], everything.get_resource_links(count=2)[1:]]")
    image, links = value(reply)
    assert (image["type"], image["mime_type"], [link["type"] for link in links]) == (
        "image", "image/png", ["resource_link"] * 2
    )  # fmt: skip
    sent = blocks(reply)
    assert [block["type"] for block in sent] == ["image", "resource_link", "resource_link"]
    assert len(base64.b64decode(sent[0]["data"])) == image["size"] > 1000
    assert [block["uri"] for block in sent[1:]] == [link["uri"] for link in links]


def test_annotations_of_content_reach_the_client(talk: AskedTalk) -> None:
    message, image = run(talk, "everything.get_annotated_message(messageType='error', includeImage=True)").result[
        "content"
    ]
    assert "Error" in message["text"]
    assert image["annotations"]["audience"] == ["user"]


def test_embedded_resources_are_text_for_the_program_and_blocks_for_the_client(talk: AskedTalk) -> None:
    command = "[everything.get_resource_reference(resourceType=t, resourceId=1)[1] for t in ('Text', 'Blob')]"
    reply = run(talk, command)
    text, blob = value(reply)
    assert "plaintext resource" in text["text"]
    assert blob["size"] > 10
    assert ["text" in block["resource"] for block in blocks(reply)] == [True, False]


def test_resources_and_prompts_are_functions_of_the_pack(talk: AskedTalk) -> None:
    command = """
names = [resource["name"] for resource in everything.resources()]
text = everything.resource(uri=everything.resources()[0]["uri"])
[names, text, [prompt["name"] for prompt in everything.prompts()], everything.prompt(name="simple-prompt")]
"""
    names, text, prompts, prompt = value(run(talk, command))
    assert "architecture.md" in names
    assert "# " in json.dumps(text)
    assert "simple-prompt" in prompts
    assert "This is a simple prompt" in json.dumps(prompt)


def test_a_server_is_told_the_working_directory_as_its_root(talk: AskedTalk) -> None:
    assert talk.where.cwd.as_uri() in run(talk, "everything.get_roots_list()").text


def test_a_servers_progress_is_the_clients_progress(talk: AskedTalk) -> None:
    command = "everything.trigger_long_running_operation(duration=0.4, steps=4)"
    assert "completed" in run(talk, command, _meta={"progressToken": "steps"}).text
    told = [message["params"] for message in talk.wire.notifications if "progress" in message["method"]]
    mine = [params for params in told if params["progressToken"] == "steps"]
    # The last step comes with the reply, and nothing is told after a reply.
    assert [params["message"] for params in mine][:3] == ["1/4", "2/4", "3/4"]
    amounts = [params["progress"] for params in mine]
    assert amounts == sorted(set(amounts))


def test_a_servers_question_reaches_the_user_with_its_name_and_the_answer_the_server(talk: AskedTalk) -> None:
    talk.questions.clear()
    answer = {"action": "accept", "content": {"name": "Ada"}}
    reply = talk.run("everything.trigger_elicitation_request()", answer)
    assert "- Name: Ada" in reply.text
    (question,) = talk.questions
    assert question["message"].startswith("The server 'everything' asks: Please provide inputs")
    assert "name" in question["requestedSchema"]["required"]
    declined = talk.run("everything.trigger_elicitation_request()", {"action": "decline"})
    assert "declined" in declined.text


def test_arguments_that_a_real_schema_forbids_never_reach_the_server(talk: AskedTalk) -> None:
    reply = run(talk, "everything.get_structured_content(location='Paris')")
    assert reply.is_error
    assert "'New York', 'Chicago', 'Los Angeles'" in reply.text or '"New York"' in reply.text
    assert "did you mean 'create_entities'" in run(talk, "memory.create_entites(entities=[])").text


def named(talk: AskedTalk, words: str) -> list[int]:
    """Return the processes below OneTool whose command line has *words* in it; the guard has all words of its child."""
    below = [stat.pid for stat in process_tree(talk.wire.pid)]
    return [pid for pid in below if words in command(pid) and "guard" not in command(pid)]


@pytest.mark.parametrize("words", ["node_modules/.bin/mcp-server-memory", "npm exec"], ids=["server", "launcher"])
def test_a_real_server_that_is_killed_comes_back_with_what_it_knew(tmp_path: Path, words: str) -> None:
    with house(tmp_path, ["memory"], policy={"allow": ["memory.*"]}) as talk:
        seen: set[int] = set()
        for number in range(3):
            entity = f"[dict(name='e{number}', entityType='t', observations=[])]"
            made = run(talk, f"len(memory.create_entities(entities={entity})['entities'])")
            # After a death, calls fail for a short while, or are answered by what a dead launcher left behind.
            unknown = False
            for _ in range(50):
                if not made.is_error and named(talk, words):
                    break
                assert not made.is_error or "the server 'memory' is not available" in made.text
                # Whoever repeats a write of which nobody knows whether it took effect is asked first.
                unknown = made.is_error and (unknown or "took effect is unknown" in made.text)
                again = f"import time\ntime.sleep(0.2)\nlen(memory.create_entities(entities={entity}))"
                made = talk.run(again, *([YES] if unknown else []))
            pids = named(talk, words)
            assert pids
            seen |= {stat.pid for stat in process_tree(talk.wire.pid)} - {talk.wire.pid}
            os.kill(pids[0], 9)
        talk.wire.close()
    assert_gone(seen)
    written = (talk.where.cwd / "memory.jsonl").read_text()
    assert [json.loads(line)["name"] for line in written.splitlines()] == ["e0", "e1", "e2"]


def test_no_process_of_any_server_stays_when_the_client_has_gone(tmp_path: Path) -> None:
    with house(tmp_path, NAMES, policy={"allow": ["*"]}) as talk:
        command = "[everything.echo(message='x'), memory.read_graph(), time.get_current_time(timezone='UTC')]"
        assert not run(talk, command).is_error
        below = [stat.pid for stat in process_tree(talk.wire.pid) if stat.pid != talk.wire.pid]
        assert len(below) >= 6
        talk.wire.close()
    assert_gone(below)
