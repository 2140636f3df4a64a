"""What a project's settings may say: the one place that knows what may come from a repository."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

from ot import extras
from ot.config.document import Node
from ot.config.expand import HERE, REFERENCE
from ot.config.layer import ADDED_UP, TOPICS, Layer
from ot.config.models import Config, Limits, Policy, Security
from ot.config.paths import SECRETS_FILE, expand_home
from ot.config.problems import Problem, describe_value
from ot.config.secrets import NAME
from ot.config.sections import section_names
from ot.config.snapshot import UNHASHED_FOLDERS

STRICTNESS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("security", "sanitize"): get_args(Security.model_fields["sanitize"].annotation),
    ("policy", "changed_definitions"): get_args(Policy.model_fields["changed_definitions"].annotation),
}
"""Keys that a project may only make stricter, with their values from the least strict on."""

CEILINGS = (
    *(("limits", name) for name in Limits.model_fields),
    ("output", "max_total_bytes"),
    ("policy", "ask_seconds"),
    ("sessions", "most"),
)
"""Keys that a project may lower but not raise."""

MAY_TIGHTEN = ("ask_seconds", "changed_definitions", "deny")
USERS_ALONE = (
    ("background",),
    ("daemon",),
    ("engines",),
    ("ledger",),
    ("recording",),
    ("workers",),
    ("output", "store"),
    ("security", "dot_names"),
    ("security", "internal_hosts"),
    ("security", "roots"),
    ("tools", "web", "internal_hosts"),
    *(("policy", name) for name in Policy.model_fields if name not in MAY_TIGHTEN),
)
"""Keys that only the user's own configuration may hold: where programs run, what tools reach, who gets a key."""


def users_alone() -> Iterator[tuple[str, ...]]:
    """Yield the keys of that kind; whatever a plugin lets be set is one, too."""
    yield from USERS_ALONE
    yield from ((name,) for name in sorted({*section_names(), *extras.SECTIONS}))


FOLDERS = ", ".join(sorted(UNHASHED_FOLDERS))

AS_WRITTEN = ("command", "args", "cwd", "url", "openapi")
"""What says which program runs where, or is reached: shown by the trust screen, so only ``HERE`` is filled in later."""

RUNS_CODE = re.compile(
    r"(?:LD|DYLD|DENO|BUN|COR|CORECLR)_\w+|GIT_(?:CONFIG|SSH)\w*|PYTHON\w*|PERL5?(?:OPT|LIB|DB)|RUBY(?:OPT|LIB)"
    r"|NODE_(?:OPTIONS|PATH|REPL_EXTERNAL_MODULE)|NPM_CONFIG_(?!\w*(?:AUTH|TOKEN))\w*"
    r"|(?:_JAVA|JAVA_TOOL|JDK_JAVA)_OPTIONS|CLASSPATH|DOTNET_STARTUP_HOOKS|LUA_INIT\w*|PHPRC|PHP_INI_SCAN_DIR|R_PROFILE\w*"
    r"|PATH|BASH_ENV|SHELL|SHELLOPTS|IFS|PS4|PROMPT_COMMAND|(?:GIT_|SSH_|SUDO_)ASKPASS"
    r"|GIT_(?:EXEC_PATH|EXTERNAL_DIFF|PROXY_COMMAND)|(?:GIT_)?(?:\w*EDITOR|VISUAL|PAGER)|BROWSER",
    re.ASCII | re.IGNORECASE,
)
"""Variables by which a program is told to run something else: their values must be seen, so no secret fills them."""
INSTALLS = re.compile(r"(?:UV|PIP)_(?!\w*(?:AUTH|TOKEN|PASSWORD|USERNAME))\w*", re.ASCII | re.IGNORECASE)
"""Variables that say from where packages are installed, likewise; credentials have variables of their own."""


def not_for_projects(layer: Layer, root: Path) -> list[Problem]:
    """Return the settings that no project may make in its directory *root*, whatever its user has set."""
    return [
        *_secrets_elsewhere(layer, root),
        *_topics_outside(layer.node, root),
        *_find_filled_in_later(layer.node),
        *_documents_outside(layer.node, root),
    ]


def find_loosened(project: Node, user: Config) -> list[Problem]:
    """Return the settings by which a project tries to loosen limits or override the user."""
    return [
        *_find_raised(project, user),
        *_less_strict(project, user),
        *_users_alone(project),
        *_check_result_store(project),
    ]


def project_rule(path: tuple[str, ...]) -> str:
    """Return what a project may do with the key at *path*, or nothing where it may do all."""
    if any(path[: len(key)] == key for key in users_alone()):
        return "only the user's own configuration may set it"
    if path in CEILINGS:
        return "a project may only lower it"
    rules: dict[tuple[str, ...], str] = {
        **dict.fromkeys(STRICTNESS, "a project may only make it stricter"),
        **{("policy", name): "a project adds to the user's" for name in ADDED_UP},
        ("servers",): "a project's replaces yours of the same name entirely",
        ("output", "result_store_dir"): f"in a project, below {FOLDERS}",
        ("secrets_file",): "in a project, inside its .onetool directory",
    }
    return rules.get(path, "")


def is_filled_in(text: str) -> bool:
    """Return whether *text* takes a value that is not written in it, the workspace aside."""
    return bool(_foreign(text))


def secrets_file_of(layer: Layer, root: Path) -> Path:
    """Return where the secrets of *layer*, read from *root*, are kept."""
    node = layer.node.get("secrets_file")
    if node is None:
        return root / SECRETS_FILE
    return Path(os.path.normpath(node.place.file.parent / expand_home(str(node.value))))


def _secrets_elsewhere(layer: Layer, root: Path) -> list[Problem]:
    file, top = secrets_file_of(layer, root), Path(os.path.normpath(root))
    if file.is_relative_to(top) and file != top and file.relative_to(top).parts[0] not in UNHASHED_FOLDERS:
        return []
    place = layer.node.entries["secrets_file"].place
    return [Problem(place, f"secrets_file must be inside the project's .onetool directory, and not below {FOLDERS}")]


def _topics_outside(layer: Node, root: Path) -> list[Problem]:
    """Return the topics of a project whose files are not where the server may write without ending its trust."""
    text = f"the file of a project's topic must be below {FOLDERS} in its .onetool directory"
    allowed = {root / folder for folder in UNHASHED_FOLDERS}
    files = [file for topic in layer.at(*TOPICS).items if (file := topic.get("file"))]
    outside = [file for file in files if allowed.isdisjoint(Path(str(file.value)).parents)]
    return [Problem(file.place, f"{text}, not {describe_value(file.value)}") for file in outside]


def _documents_outside(layer: Node, root: Path) -> Iterator[Problem]:
    """Yield the OpenAPI documents that are files which could change without ending the project's trust."""
    for name, server in layer.at("servers").entries.items():
        source = str(server.at("openapi").value or "")
        if not source or source.startswith(("http://", "https://")):
            continue
        file, top = Path(os.path.normpath(root / source)), Path(os.path.normpath(root))
        if not file.is_relative_to(top) or file == top or file.relative_to(top).parts[0] in UNHASHED_FOLDERS:
            text = "must be an address or a file inside the project's .onetool directory, and not below"
            yield Problem(server.at("openapi").place, f"servers.{name}.openapi {text} {FOLDERS}: copy it there")


def _find_filled_in_later(project: Node) -> Iterator[Problem]:
    for name, server in project.at("servers").entries.items():
        for key in AS_WRITTEN:
            field = server.at(key)
            for text in field.items or (field,):
                yield from _references(f"servers.{name}.{key}", text)
        for variable, text in server.at("env").entries.items():
            yield from _variable(f"servers.{name}.env", variable, text)


def _references(key: str, node: Node) -> Iterator[Problem]:
    for reference in _foreign(str(node.value)):
        text = f"{key} of a project's server may not refer to {reference}: it is used as it is written"
        advice = "put the secret into env or headers, or add the server to your own configuration"
        yield Problem(node.place, f"{text}; {advice}")


def _foreign(text: str) -> list[str]:
    return [found[0] for found in REFERENCE.finditer(text) if found[0] != HERE]


def _variable(key: str, name: str, node: Node) -> Iterator[Problem]:
    if not NAME.fullmatch(name):
        yield Problem(node.place, f"{key}: {name[:40]!r} cannot be a variable's name: use letters, digits and _")
    elif (RUNS_CODE.fullmatch(name) or INSTALLS.fullmatch(name)) and REFERENCE.search(str(node.value)):
        text = f"{key}.{name} of a project's server may not refer to a secret: programs run what it says"
        yield Problem(node.place, f"{text}; write the value itself, so that 'onetool trust' shows it")


def _find_raised(project: Node, user: Config) -> list[Problem]:
    found: list[Problem] = []
    for section, key in CEILINGS:
        node = project.get(section, key)
        most = getattr(getattr(user, section), key)
        if node and isinstance(node.value, int | float) and node.value > most:
            text = f"{section}.{key} may not be raised by a project: {node.value:,} is above {most:,}"
            found.append(Problem(node.place, f"{text}, which only your own configuration can change"))
    return found


def _less_strict(project: Node, user: Config) -> list[Problem]:
    found: list[Problem] = []
    for (section, key), values in STRICTNESS.items():
        node, users = project.get(section, key), getattr(getattr(user, section), key)
        if node and values.index(str(node.value)) < values.index(users):
            text = f"{section}.{key} may not be loosened by a project: it is '{users}'"
            found.append(Problem(node.place, f"{text}, not {describe_value(node.value)}"))
    return found


def _users_alone(project: Node) -> list[Problem]:
    text = "may not be set by a project, only by your own configuration"
    found = [(".".join(key), project.get(*key)) for key in users_alone()]
    return [Problem(node.place, f"{name} {text}") for name, node in found if node]


def _check_result_store(project: Node) -> list[Problem]:
    # A result stored beside hashed files would end the project's trust by itself.
    node = project.get("output", "result_store_dir")
    if node is None or str(node.value).split("/")[0] in UNHASHED_FOLDERS:
        return []
    text = f"output.result_store_dir must be below {FOLDERS} in a project"
    return [Problem(node.place, f"{text}, not {describe_value(node.value)}")]
