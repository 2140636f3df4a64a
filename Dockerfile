# OneTool as a container that speaks MCP on standard input and output:
#   docker build -t onetool-run . && docker run -i --rm -v "$PWD:/work" onetool-run
# and, with --build-arg EXTRAS=team, over HTTP for a team: deploy/ has what it needs around it.
# Never built so far: tests check the shape of this file only. What holds inside a container:
# - The exact engine needs Landlock and seccomp from the host's kernel, and a container profile that allows both.
#   `docker run --rm onetool-run doctor` says whether its self-test passes; where it does not, the portable engine runs.
# - Docker's default profile forbids new user namespaces, so the jail's namespace layer is usually missing here.
# - There is no Node.js: servers that start by `npx` need an image of your own on top of this one; `uvx` works.
FROM python:3.12-slim-bookworm AS build
ARG EXTRAS=""
WORKDIR /src
RUN pip install --no-cache-dir 'uv>=0.13.7,<0.14'
COPY pyproject.toml README.md LICENSE requirements.lock ./
COPY src src
COPY plugins plugins
RUN uv build --wheel --all-packages --out-dir /dist \
    && uv venv /opt/onetool \
    && uv pip install --python /opt/onetool --compile-bytecode --constraint requirements.lock \
       --find-links /dist "$(echo /dist/onetool_run-*.whl)${EXTRAS:+[$EXTRAS]}"

FROM python:3.12-slim-bookworm
RUN useradd --create-home --uid 1000 onetool && install --directory --owner onetool /work /work/people /var/log/onetool
COPY --from=build /opt/onetool /opt/onetool
# What need not last is in /tmp: deploy/ mounts the rest of the root so that nothing can be written there.
ENV PATH=/opt/onetool/bin:$PATH XDG_STATE_HOME=/tmp/state
USER onetool
WORKDIR /work
ENTRYPOINT ["onetool"]
CMD ["serve"]
