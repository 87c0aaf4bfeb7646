"""Networks that value leaves, and their training; torch is loaded when it is first needed.

Imported by `cli`; it uses `arena`, `mcts`, `engine` and `workers`.
Read `training.py` first, then `selfplay.py` and `run.py`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from uctree.learn.extras import load_module

# Threads that spin while they wait are several times slower beside other busy processes. OpenMP
# reads this when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

if TYPE_CHECKING:
    from uctree.learn.agents import NetworkAgent
    from uctree.learn.checkpoints import Checkpoint
    from uctree.learn.environments import environment
    from uctree.learn.inference import evaluator, export_onnx, load_onnx, predictor
    from uctree.learn.model import LearnedModel, check_model, default_model, mlp_model, tower_model
    from uctree.learn.model_inference import load_onnx_model
    from uctree.learn.network import (
        Network,
        build,
        check_network,
        default_network,
        describe,
        losses,
        mlp,
        tower,
    )
    from uctree.learn.options import Options, describe_options, make_options
    from uctree.learn.replay import Replay
    from uctree.learn.report import write_report
    from uctree.learn.run import Learned, Run, load
    from uctree.learn.training import Progress, train

__all__ = [
    "Checkpoint",
    "Learned",
    "LearnedModel",
    "Network",
    "NetworkAgent",
    "Options",
    "Progress",
    "Replay",
    "Run",
    "build",
    "check_model",
    "check_network",
    "default_model",
    "default_network",
    "describe",
    "describe_options",
    "environment",
    "evaluator",
    "export_onnx",
    "load",
    "load_onnx",
    "load_onnx_model",
    "losses",
    "make_options",
    "mlp",
    "mlp_model",
    "predictor",
    "tower",
    "tower_model",
    "train",
    "write_report",
]

# The public names, and the modules that define them.
_LAZY = {
    "evaluator": "inference", "export_onnx": "inference", "load_onnx": "inference",
    "predictor": "inference",
    "Network": "network", "build": "network", "check_network": "network",
    "default_network": "network", "describe": "network", "losses": "network", "mlp": "network",
    "tower": "network",
    "LearnedModel": "model", "check_model": "model", "default_model": "model",
    "mlp_model": "model", "tower_model": "model", "load_onnx_model": "model_inference",
    "environment": "environments",
    "Options": "options", "describe_options": "options", "make_options": "options",
    "Checkpoint": "checkpoints", "Learned": "run", "Run": "run", "load": "run", "Replay": "replay",
    "NetworkAgent": "agents", "write_report": "report", "Progress": "training", "train": "training",
}  # fmt: skip
_MODULES = (
    "agents", "checkpoints", "diagnosis", "environments", "exact", "inference", "ladder", "latent",
    "model", "model_error", "network", "options", "pretrained", "replay", "replies", "report",
    "run", "selfplay", "sequences", "targets", "training", "unroll",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LAZY and name not in _MODULES:
        raise AttributeError(f"module 'uctree.learn' has no attribute {name!r}")
    module = load_module(f"uctree.learn.{_LAZY.get(name, name)}")
    value = getattr(module, name) if name in _LAZY else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
