"""The pretrained networks that come with uctree."""

from __future__ import annotations

import pytest

from uctree import games, learn
from uctree.learn.batched_play import predict
from uctree.learn.pretrained import pretrained_network

pytest.importorskip("torch", reason="the extra learn is not installed")
pytest.importorskip("safetensors", reason="the extra learn is not installed")


def test_the_pretrained_network_of_connect_four_opens_optimally():
    game = games.connect_four()
    folder = pretrained_network(game)
    evaluator = learn.load(folder, game).evaluator()
    priors, values = predict(game, evaluator, [game.start()])
    assert priors[0].argmax() == 3  # the only action that wins
    assert values[0, 0] > 0


def test_other_boards_have_no_pretrained_network():
    assert pretrained_network(games.connect_four(rows=5)) is None
    assert pretrained_network(games.connect_four(playouts="heuristic")) is None
