# OneTool as a container that speaks MCP on standard input and output:
#   docker build -t onetool-run . && docker run -i --rm -v "$PWD:/work" onetool-run
# and, with --build-arg EXTRAS=team, over HTTP for a team: deploy/ has what it needs around it.
# BASE is a Debian, or what is made from one, with Python 3.12 or later and its venv. What holds inside a container:
# - The exact engine needs Landlock and seccomp from the host's kernel, and a container profile that allows both.
#   `docker run --rm onetool-run doctor` says whether its self-test passes; where it does not, the portable engine runs.
# - Docker's default profile forbids new user namespaces, so the jail's namespace layer is usually missing here.
# - There is no Node.js: servers that start by `npx` need an image of your own on top of this one; `uvx` works.
ARG BASE=docker.io/library/python:3.12-slim-bookworm
FROM ${BASE} AS build
ARG EXTRAS=""
WORKDIR /src
# Debian's own Python takes packages in a venv alone.
RUN python3 -m venv /opt/uv && /opt/uv/bin/pip install --no-cache-dir 'uv>=0.13.7,<0.14'
ENV PATH=/opt/uv/bin:$PATH UV_NO_CACHE=1 UV_PYTHON_DOWNLOADS=never
COPY pyproject.toml README.md LICENSE requirements.lock ./
COPY src src
COPY packs packs
COPY plugins plugins
RUN uv build --wheel --all-packages --out-dir /dist \
    && uv venv --python "$(command -v python3)" /opt/onetool \
    && uv pip install --python /opt/onetool --compile-bytecode --constraint requirements.lock \
       --find-links /dist "$(echo /dist/onetool_run-*.whl)${EXTRAS:+[$EXTRAS]}"

FROM ${BASE}
RUN useradd --create-home --uid 1000 onetool \
    && install --directory --owner onetool --mode 0700 /home/onetool/.onetool \
    && install --directory --owner onetool /work /var/cache/onetool /var/log/onetool
COPY --from=build /opt/onetool /opt/onetool
# Only these, the home and /tmp need to be writable: deploy/ mounts the rest so that nothing can be written there.
ENV PATH=/opt/onetool/bin:$PATH XDG_STATE_HOME=/tmp/state XDG_CACHE_HOME=/var/cache/onetool
USER onetool
WORKDIR /work
ENTRYPOINT ["onetool"]
CMD ["serve"]
