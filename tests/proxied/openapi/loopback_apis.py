"""The APIs that the documents describe, as apps for loopback."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

KEY = "k-4711-very-secret"


class Shop:
    """A shop with some pets; it notes every request, and wants a key."""

    def __init__(self) -> None:
        self.pets: dict[int, dict[str, Any]] = {1: {"id": 1, "name": "Tom", "kind": "cat"}}
        self.seen: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.stalled = asyncio.Event()
        self.answers: list[Response] = []
        """What it answers instead, one after the other."""
        self.app = Starlette(
            routes=[Route("/v1/{rest:path}", self._answer, methods=["GET", "POST", "PATCH", "DELETE"])]
        )

    async def _answer(self, request: Request) -> Response:
        self.seen.append((request.method, f"{request.url.path}?{request.url.query}".rstrip("?")))
        self.headers.append(dict(request.headers))
        if self.answers:
            return self.answers.pop(0)
        if request.headers.get("x-shop-key") != KEY:
            return JSONResponse({"error": {"message": "Unknown key", "type": "auth"}}, 401)
        match request.method, request.path_params["rest"].split("/"):
            case "GET", ["pets"]:
                query = [list(pair) for pair in request.query_params.multi_items()]
                return JSONResponse([*self.pets.values(), {"query": query, "trace": request.headers.get("x-trace")}])
            case "POST", ["pets"]:
                pet = {"id": len(self.pets) + 1, **await request.json()}
                self.pets[pet["id"]] = pet
                return JSONResponse(pet, 201)
            case method, ["pets", number]:
                return await self._one(method, int(number), request)
            case "GET", ["pets", _, "photo"]:
                return Response(b"\x89PNG....", media_type="image/png")
            case "POST", ["search"]:
                return PlainTextResponse((await request.body()).decode())
            case _:
                return JSONResponse({"error": {"message": "No such page"}}, 404)

    async def _one(self, method: str, number: int, request: Request) -> Response:
        if number not in self.pets:
            return JSONResponse({"error": {"message": f"There is no pet {number}"}}, 404)
        if method == "DELETE":
            del self.pets[number]
            return Response(status_code=204)
        if method == "PATCH":
            self.pets[number] |= await request.json()
        return JSONResponse(self.pets[number])


class HelpDesk:
    """A help desk that answers as web frameworks do that write their documents by themselves."""

    def __init__(self) -> None:
        self.bodies: list[Any] = []
        routes = [
            Route("/tickets/{number}", self._read),
            Route("/tickets", self._open, methods=["POST"]),
            Route("/tickets/{number}/reply", self._reply, methods=["POST"]),
            Route("/health", lambda request: PlainTextResponse("all well")),
        ]
        self.app = Starlette(routes=routes)

    async def _read(self, request: Request) -> Response:
        if request.path_params["number"] == "0":
            detail = [{"loc": ["path", "ticket_id"], "msg": "Input should be greater than 0", "type": "greater_than"}]
            return JSONResponse({"detail": detail}, 422)
        return JSONResponse({"id": int(request.path_params["number"]), "verbose": request.query_params.get("verbose")})

    async def _open(self, request: Request) -> Response:
        self.bodies.append(await request.json())
        return RedirectResponse("/tickets/7", 303)

    async def _reply(self, request: Request) -> Response:
        self.bodies.append(await request.json())
        return JSONResponse(["list", "instead"])


def echoing() -> Starlette:
    """Return an app that answers every request with its method and path."""

    async def answer(request: Request) -> Response:
        return JSONResponse({"name": f"{request.method} {request.url.path}"})

    return Starlette(routes=[Route("/{rest:path}", answer, methods=["GET", "POST", "PUT", "DELETE"])])
