"""The server of the studio: files for the browser, and a socket for every tab.

It listens on loopback unless it is told otherwise, and then it asks for a token. What a page of
another site could do is refused: foreign names of the host, foreign origins, and everything that
the policy of the page does not allow.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import secrets
import socket
import threading
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from uctree import pages
from uctree.errors import UctreeError
from uctree.studio.library import Library
from uctree.studio.messages import LONGEST_MESSAGE
from uctree.studio.outbox import Outbox, waking
from uctree.studio.session import Session

MOST_TABS = 64
OWN = Path(__file__).parent / "static"
SHARED = Path(pages.__file__).parent / "static"
COOKIE = "uctree_studio"
# Nothing is loaded from anywhere else; no script and no style stands in the page itself.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def serve(
    game: str | None = None, *, host: str = "127.0.0.1", port: int = 8000, open_page: bool = False
) -> None:
    """Serve the studio until Ctrl-C.

    Args:
        game: the text of the game to begin with, as `hex:size=7` or `my_game.py:race`.
        host: the address to listen on; beyond this machine a token is asked for.
        port: the port; 0 for any that is free.
        open_page: whether to open the page in the browser of this machine.
    """
    studio = Studio(game, host=host, port=port)
    print(f"The studio is at {studio.url}  (Ctrl-C ends it)", flush=True)
    if studio.token is not None:
        print(
            f"It can be reached from other machines at {host}. Whoever has this address, token "
            "included, can search on this one; traffic is not encrypted.",
            flush=True,
        )
    if open_page:
        import webbrowser

        webbrowser.open(studio.url)
    with contextlib.suppress(KeyboardInterrupt):  # the way to end it
        studio.run()


class Studio:
    """A server on a port of its own, and the sessions of its tabs."""

    def __init__(self, game: str | None = None, *, host: str = "127.0.0.1", port: int = 8000):
        self.library = Library(game)
        self.sessions: set[Session] = set()
        if self.library.workshop is not None:
            self.library.workshop.changed = self._reload
        self._socket = _listening(host, port)
        self.port = int(self._socket.getsockname()[1])
        self.token = None if is_loopback(host) else secrets.token_urlsafe(16)
        name = f"[{host}]" if ":" in host else host
        query = "" if self.token is None else f"?token={self.token}"
        self.url = f"http://{name}:{self.port}/{query}"
        config = uvicorn.Config(
            self.app(), lifespan="off", log_level="warning", access_log=False,
            ws="websockets-sansio", ws_max_size=LONGEST_MESSAGE, ws_per_message_deflate=False,
            server_header=False, timeout_graceful_shutdown=1,
        )  # fmt: skip
        self.server = uvicorn.Server(config)

    def app(self) -> ASGIApp:
        """The application, behind its guard."""
        routes = [
            Route("/", self._page),
            WebSocketRoute("/socket", self._socket_of_a_tab),
            Mount("/studio", StaticFiles(directory=OWN)),
            Mount("/pages", StaticFiles(directory=SHARED)),
        ]
        return Guard(Starlette(routes=routes), self.token)

    def run(self) -> None:
        """Serve until Ctrl-C, or until `stop`."""
        workshop = self.library.workshop
        try:
            if workshop is not None:
                workshop.start()
            self.server.run(sockets=[self._socket])
        finally:
            if workshop is not None:
                workshop.stop()
            for session in list(self.sessions):
                session.close()
            self._socket.close()

    def stop(self) -> None:
        """Let `run` end, from another thread."""
        self.server.should_exit = True

    def _reload(self) -> None:
        """Tell all tabs that the file of the game was saved, or examined."""
        for session in list(self.sessions):
            session.reload()

    async def _page(self, request: Request) -> Response:
        if self.token is not None and "token" in request.query_params:
            # From now on the cookie has the token, and the address bar does not.
            response: Response = RedirectResponse("/", status_code=303)
            response.set_cookie(COOKIE, self.token, httponly=True, samesite="strict")
            return response
        return FileResponse(OWN / "studio.html")

    async def _socket_of_a_tab(self, websocket: WebSocket) -> None:
        """Connect a tab with a session of its own: one reader, one writer, one thread."""
        await websocket.accept()
        if len(self.sessions) >= MOST_TABS:
            await websocket.close(1013, f"the studio has {MOST_TABS} tabs already; close one")
            return
        something = asyncio.Event()
        outbox = Outbox(waking(asyncio.get_running_loop(), something))
        session = Session(self.library, outbox)
        self.sessions.add(session)
        threading.Thread(target=session.run, name="uctree studio", daemon=True).start()
        writer = asyncio.create_task(_write(websocket, outbox, something))
        try:
            while True:
                message = await websocket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                session.receive(message.get("text") or message.get("bytes") or "")
        finally:
            session.close()
            self.sessions.discard(session)
            writer.cancel()


async def _write(websocket: WebSocket, outbox: Outbox, something: asyncio.Event) -> None:
    """Send what is in the outbox, as fast as the tab takes it."""
    while True:
        await something.wait()
        something.clear()
        for message in outbox.take():
            await websocket.send_text(message.decode())


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens; UctreeError if the port is taken or the address is not ours."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()  # from now on a browser that is too early waits for its answer
    except (OSError, OverflowError) as error:
        listener.close()
        what = getattr(error, "strerror", None) or str(error)
        raise UctreeError(
            f"the studio cannot listen on {host}, port {port}: {what}; choose another one with "
            "--port, or --port 0 for any that is free"
        ) from error
    return listener


# --- the guard -----------------------------------------------------------------------------------


class Guard:
    """Refuses requests that a page of another site could make, and those without the token."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status, text = self._refusal(scope)
        if status == 0:
            await self._app(scope, receive, _with_headers(send))
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": text})
        else:
            response = PlainTextResponse(text, status)
            await response(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> tuple[int, str]:
        """The status and the text of a refusal; 0 if there is nothing to refuse."""
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        # Without this, a name of another site that leads to this machine would open the studio.
        if self._token is None and not is_loopback(_name_of(host)):
            return 400, "the studio answers on this machine alone, as http://127.0.0.1"
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return 403, "the studio takes requests of its own page alone"
        if scope["type"] == "websocket" and origin is None:
            return 403, "the studio takes sockets of its own page alone"
        if self._token is not None and not self._has_token(scope, headers):
            return 403, "this studio asks for a token: open the address that it printed"
        return 0, ""

    def _has_token(self, scope: Scope, headers: Headers) -> bool:
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [])
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            cookie = None
        given += [] if cookie is None else [cookie.value]
        token = (self._token or "").encode()
        return any(secrets.compare_digest(each.encode("utf-8", "replace"), token) for each in given)


def _name_of(host: str) -> str:
    """The name in a Host header, without the port.

    >>> _name_of("localhost:8000"), _name_of("[::1]:80"), _name_of("evil.example")
    ('localhost', '::1', 'evil.example')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _with_headers(send: Send) -> Send:
    """`send`, which adds the headers of the studio to responses."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
        await send(message)

    return sending
