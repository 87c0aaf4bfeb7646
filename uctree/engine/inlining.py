"""Lets Numba optimise and emit machine code once per kernel instead of once per function.

Numba compiles every function that a kernel reaches as if it were called alone: it links the
functions below, runs all of LLVM's passes on them and emits machine code that is never called.
Inside `one_piece` the functions of a kernel are only linked into the kernel itself, which is
optimised and emitted as a whole. This uses private parts of Numba; if they are not as expected,
functions are compiled as usual, which takes longer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def one_piece(kernel_name: str) -> Iterator[None]:
    """A context in which Numba emits `kernel_name` alone; other functions are only linked."""
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    with global_compiler_lock:
        codegen = cpu_target.target_context.codegen()
        usual = getattr(codegen, "_library_class", None)
        if usual is None or not _is_as_expected(usual):
            yield
            return
        codegen._library_class = _Libraries(usual, kernel_name)
        try:
            yield
        finally:
            del codegen._library_class


def _is_as_expected(library: type) -> bool:
    names = (
        "finalize", "get_pointer_to_function", "_get_module_for_linking", "codegen",
        "_optimize_functions", "_optimize_final_module",
    )  # fmt: skip
    return all(hasattr(library, name) for name in names)


class _Libraries:
    """Replaces Numba's class of libraries, and makes one for a function."""

    def __init__(self, usual: type, kernel_name: str) -> None:
        self._usual, self._kernel_name = usual, kernel_name
        self._kernel, self._linked = _kernel_library(usual), _linked_library(usual)

    def __call__(self, codegen: Any, name: str, **options: Any) -> Any:
        kind = self._kernel if name == self._kernel_name else self._linked
        return kind(codegen, name, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._usual, name)


def _kernel_library(usual: type) -> type:
    class KernelLibrary(usual):  # type: ignore[misc]
        """The code of a kernel with all functions that it reaches."""

        def _optimize_final_module(self) -> None:
            # Numba runs all passes twice, to remove counts of references; kernels have none.
            manager, builder = self._codegen._module_pass_manager()
            manager.run(self._final_module, builder)

    return KernelLibrary


def _linked_library(usual: type) -> type:
    class LinkedLibrary(usual):  # type: ignore[misc]
        """Code that is linked into the kernel that calls it, and never called from Python."""

        def _optimize_functions(self, module: Any) -> None:
            module.data_layout = self._codegen._data_layout

        def finalize(self) -> None:
            self._raise_if_finalized()
            seen: set[Any] = set()
            for library in self._linking_libraries:
                if library not in seen:
                    seen.add(library)
                    self._reload_init.update(library._reload_init)
                    module = library._get_module_for_linking()
                    self._final_module.link_in(module, preserve=True)
            self._finalize_dynamic_globals()
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0

        @property
        def codegen(self) -> Any:
            return _WithoutEnvironments(self._codegen)

    return LinkedLibrary


class _WithoutEnvironments:
    """Numba's code generator for code that is not loaded, and so has no environment."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing: code that is loaded from a cache has no environment either."""
