"""The studio: games are played and searches watched in a browser. Imported by `cli`.

A tab is a `Session` with a thread of its own; `server.py` connects it to the tab by a socket.
Read `session.py` first; `static/` holds what the browser runs, besides the modules of `pages`.
"""
