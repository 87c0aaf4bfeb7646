"""The passes of Numba that functions of kernels need.

Numba runs 28 passes over every function. About half of them look for what no kernel has: closures,
comprehensions, `with` blocks, array expressions, literal loops. Rules of users may have these, and
go through all passes.
"""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def kernel_passes() -> Any:
    """The compiler of functions of kernels, as Numba's option `pipeline_class`."""
    from numba.core import typed_passes as typed
    from numba.core import untyped_passes as untyped
    from numba.core.compiler import CompilerBase
    from numba.core.compiler_machinery import PassManager

    passes = (
        untyped.TranslateByteCode, untyped.FixupArgs, untyped.IRProcessing,
        untyped.RewriteSemanticConstants, untyped.DeadBranchPrune, untyped.GenericRewrites,
        untyped.ReconstructSSA, untyped.DeadBranchPrune, typed.NopythonTypeInference,
        typed.PreLowerStripPhis, typed.NoPythonSupportedFeatureValidation, typed.IRLegalization,
        typed.AnnotateTypes, typed.NativeLowering, typed.NoPythonBackend,
    )  # fmt: skip

    class KernelPasses(PassManager):
        """Numba's list of passes, without measuring and reporting each of them."""

        def _runPass(self, index: int, kernel_pass: Any, state: Any) -> None:
            kernel_pass.analysis = self._analysis
            kernel_pass.run_initialization(state)
            kernel_pass.run_pass(state)
            kernel_pass.run_finalizer(state)

    class KernelCompiler(CompilerBase):
        """Numba's compiler with the passes that kernels need."""

        def define_pipelines(self) -> list[Any]:
            manager = KernelPasses("kernel")
            for each in passes:
                manager.add_pass(each, each.__name__)
            manager.finalize()
            return [manager]

    return KernelCompiler
