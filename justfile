# `.ci/setup` needs nothing but bash and a Python; afterwards `.venv/bin/just` is this program.

set positional-arguments

[private]
default:
    @{{ just_executable() }} --list

# make .venv ready
setup:
    @.ci/setup

# everything that CI checks, or the checks of one plugin: just check team
check *PARTS: setup
    @.ci/checks "$@"

# lint, types and the tests that start no process, in about 1 min 45 s of processor time
quick: setup
    @.ci/checks quick

# the tests, or some of them: just test tests/registry -k "prefix or alias"
test *ARGS: setup
    .venv/bin/pytest -m "not soak" "$@"

# style and the direction of imports
lint: setup
    @.ci/checks lint

# put the code into the house's format and mend what can be mended safely
format: setup
    .venv/bin/ruff check --fix .
    .venv/bin/ruff format .

# pyright, strict
types: setup
    @.ci/checks types

# build the site into site/
docs: setup
    @.ci/checks docs

# measure what benchmarks/budgets.toml bounds, beside an earlier commit and the bare protocol library, in turns
budgets *ARGS: setup
    .venv/bin/python benchmarks/budgets.py "$@"

# README and tutorial, played word for word in an empty home, with the time of every step
walkthrough *ARGS: setup
    .venv/bin/pytest tests/walkthrough "$@"

# real speech: a synthesiser speaks orders, a recogniser understands them, tools carry them out
voice *ARGS: setup
    .venv/bin/pytest plugins/onetool-chat/tests/chat/test_transcribers.py plugins/onetool-chat/tests/cli/test_cli_chat.py -k "voice or said or utterance or file_says" -v "$@"

# long repetition, left out of `check`
soak *ARGS: setup
    .venv/bin/pytest -m soak "$@"

# write requirements.lock anew after pyproject.toml changed; --upgrade moves what is already in it
lock *ARGS:
    "$(.ci/find-uv)" pip compile --quiet --universal --python-version 3.12 --generate-hashes --no-header --no-annotate \
        --group dev pyproject.toml --output-file requirements.lock "$@"
