"""Where the files of topics are: beside the configuration that names them, whoever's that is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ot.config.document import Node
from ot.config.paths import expand_home
from ot.config.problems import Problem, given
from ot.config.snapshot import UNHASHED_FOLDERS

TOPICS = ("tools", "msg", "topics")


def placed_topics(layer: Node, root: Path) -> Node:
    """Return *layer* with the files of its topics as absolute paths: relative ones are below *root*."""
    topics = layer.get(*TOPICS)
    if topics is None or not topics.items:
        return layer
    return _with(layer, TOPICS, Node(topics.place, tuple(_placed(topic, root) for topic in topics.items)))


def topics_outside(layer: Node, root: Path) -> list[Problem]:
    """Return the topics of a project whose files are not where the server may write without ending its trust."""
    text = (
        f"the file of a project's topic must be below {', '.join(sorted(UNHASHED_FOLDERS))} in its .onetool directory"
    )
    return [
        Problem(file.place, f"{text}, not {given(file.value)}") for file in _files(layer) if not _inside(file, root)
    ]


def _files(layer: Node) -> Iterator[Node]:
    topics = layer.get(*TOPICS)
    for topic in topics.items if topics else ():
        if file := topic.get("file"):
            yield file


def _inside(file: Node, root: Path) -> bool:
    path = Path(str(file.value))
    return any(path.is_relative_to(root / folder) and path != root / folder for folder in UNHASHED_FOLDERS)


def _placed(topic: Node, root: Path) -> Node:
    file = topic.get("file")
    if file is None or not isinstance(file.value, str):
        return topic
    path = os.path.normpath(root / expand_home(file.value))
    return Node(topic.place, {**topic.entries, "file": Node(file.place, path, path)})


def _with(node: Node, path: tuple[str, ...], value: Node) -> Node:
    if not path:
        return value
    return Node(node.place, {**node.entries, path[0]: _with(node.entries[path[0]], path[1:], value)})
