"""What a browser may send: one record per kind of message, with limits."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from uctree.errors import UctreeError

LONGEST_MESSAGE = 65_536  # bytes
MOST_SIMULATIONS = 50_000_000  # of a search
MOST_SECONDS = 3600.0
MOST_PLIES = 10_000  # of an episode

Ply = Annotated[int, Meta(ge=0, le=MOST_PLIES)]
Number = Annotated[int, Meta(ge=0, lt=2**31)]
Vector = Annotated[list[float], Meta(min_length=1, max_length=1_000)]
Text = Annotated[str, Meta(max_length=1_000)]
Seat = Literal["person", "search"]
Seats = Annotated[list[Seat], Meta(max_length=100)]


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """How the search of a session searches, and how chance is taken."""

    seconds: Annotated[float, Meta(gt=0, le=MOST_SECONDS)] | None = 1.0
    num_simulations: Annotated[int, Meta(ge=1, le=MOST_SIMULATIONS)] | None = None
    options: Text = ""  # as in `search(...)`: "selection=puct(c=2), solver=True"
    by_hand: bool = False  # whether a person chooses the outcomes of chance
    teach: bool = False  # whether a person is asked again after a mistake
    even: bool = False  # whether all actions of the root get equally many visits


class Kind(Struct, forbid_unknown_fields=True, tag_field="kind", tag=str.lower):
    """A message; its name in lower case is its kind."""


class Open(Kind):
    """Begin an episode; a link or a lost connection gives its actions, seats and settings."""

    game: Text | None = None
    actions: Annotated[list[Number | Vector], Meta(max_length=MOST_PLIES)] = []
    seats: Seats | None = None
    settings: Settings | None = None
    partly: bool = False  # stop before an action that fails, as those that the doctor finds


class Act(Kind):
    """Take an action, or an outcome of chance, at this ply."""

    ply: Ply
    action: Number | Vector


class Say(Kind):
    """Take the action of a text at this ply."""

    ply: Ply
    text: Text


class Undo(Kind):
    """Go back to the last decision of a person."""


class Jump(Kind):
    """Look at the episode after this many plies."""

    ply: Ply


class Resign(Kind):
    """Give up for the player to move."""


class Sit(Kind):
    """Say who plays each seat."""

    seats: Seats


class Configure(Kind):
    """Change the settings."""

    settings: Settings


class Pause(Kind):
    """Let the seats of the search wait, or go on."""

    on: bool


class Think(Kind):
    """Search every state that is looked at until further notice, or stop it."""

    on: bool


class Hint(Kind):
    """Search the state once, as long as the settings say."""


class Restrict(Kind):
    """Search without these actions of the state."""

    excluded: Annotated[list[Number], Meta(max_length=10_000)]


class Keep(Kind):
    """Keep the search to compare the next ones with it, which begin anew; or forget it."""

    on: bool


class Review(Kind):
    """Search all states of the episode, to judge its actions; or stop it."""

    on: bool


class Save(Kind):
    """Send a file: the search as a page, its tree, the review as a page, an episode of go."""

    what: Literal["page", "tree", "review", "sgf"]


class Follow(Kind):
    """Show the variation of an action."""

    action: Number


class Explain(Kind):
    """Show the terms of the scores at the node after these actions, now or earlier in the search.

    Without `actions` nothing is explained any more.
    """

    actions: Annotated[list[Number], Meta(max_length=1_000)] | None = None
    simulations: Annotated[int, Meta(ge=0)] | None = None  # of the moment; now if omitted


class Grow(Kind):
    """Send the tree while it grows, or stop it."""

    on: bool


class Reload(Kind):
    """The file of the game was saved or examined; the server says so, no tab can."""


Message = (
    Open | Act | Say | Undo | Jump | Resign | Sit | Configure | Pause | Think | Hint | Restrict
    | Keep | Review | Save | Follow | Explain | Grow
)  # fmt: skip
DURING_A_SEARCH = (
    Follow,
    Explain,
    Grow,
)  # these are answered while it runs; all others end it first

_decoder = msgspec.json.Decoder(Message)


def read_message(raw: bytes | str) -> Message:
    """The message of a text; UctreeError if it is none."""
    try:
        return _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UctreeError(
            f"the studio cannot read this message: {error}; expected one of those that its page "
            "sends: reload the page"
        ) from error
