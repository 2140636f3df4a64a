"""Bad configurations given to a live server by ``ot.reload()``; those given at its start are in tests/config."""

from __future__ import annotations

import re

import pytest

from bad_inputs.bad_inputs_corpus import Item, each_item, payload
from faults.watched import CONFIG, Watched
from mcp_wire import WireReply


@each_item("config")
@pytest.mark.parametrize("file", ["onetool.yaml", "more.yaml"])
def test_a_bad_configuration_is_refused_by_file_and_line_and_the_old_one_stays(
    server: Watched, item: Item, file: str
) -> None:
    found = payload(item)
    directory = server.place.config.parent
    more = directory / "more.yaml"
    server.expect_files({more})

    def reload() -> WireReply:
        if file == "more.yaml":
            server.place.config.write_text("include: [more.yaml]\n" + CONFIG)
        (directory / file).write_bytes(found if isinstance(found, bytes) else found.encode())
        return server.wire.run("ot.reload()", timeout=5)

    try:
        reply = server.survive(reload)
        assert "snow 0" in server.wire.run("ws(query='snow')").text
    finally:
        server.place.config.write_text(CONFIG)
        more.unlink(missing_ok=True)
    assert reply.is_error
    assert reply.meta["ms"] <= 1000
    assert re.search(rf"{re.escape(file)}:\d+: ", reply.text)
    assert not server.wire.run("ot.reload()").is_error
