"""The command `studio`: games and searches in a browser."""

from __future__ import annotations

from uctree.cli.app import Flag, app
from uctree.errors import UctreeError


@app.command
def studio(
    game: str | None = None,
    /,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    open_page: Flag = False,
) -> None:
    """Play, and watch the search think, in a browser. Ctrl-C ends the server.

    Args:
        game: the game to begin with: built-in name, name:arguments, or file.py:name.
        host: the address to listen on; beyond this machine the page asks for a token.
        port: the port; 0 for any that is free.
        open_page: open the page in the browser of this machine.
    """
    if not 0 <= port <= 65_535:
        raise UctreeError(f"--port must be 0 to 65535; got {port}")
    try:
        from uctree.studio.server import serve
    except ImportError as error:
        raise UctreeError(
            f"the studio needs {error.name}; install it with: pip install 'uctree[studio]'"
        ) from error
    serve(game, host=host, port=port, open_page=open_page)
