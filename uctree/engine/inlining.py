"""Lets Numba optimise and emit machine code once per kernel instead of once per function.

Numba compiles every function that a kernel reaches as if it were called alone: it links the
functions below, runs all of LLVM's passes on them and emits machine code that is never called.
Inside `one_piece` the functions of a kernel are only linked into the kernel itself, each once, and
the kernel is optimised and emitted as a whole. This uses private parts of Numba; if they are not as
expected, functions are compiled as usual, which takes longer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cache
from typing import Any


class Unresolved(Exception):
    """A function calls one that is not compiled yet, by an address that is filled in later.

    So functions are compiled that call themselves with other types of arguments. Code that is only
    linked never gets the address.
    """


_UNRESOLVED = ".numba.unresolved$"


@contextlib.contextmanager
def one_piece(kernel_name: str) -> Iterator[None]:
    """A context in which Numba emits `kernel_name` alone; other functions are only linked.

    Unresolved at its end, if that cannot be.
    """
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    with global_compiler_lock:
        codegen = cpu_target.target_context.codegen()
        usual = getattr(codegen, "_library_class", None)
        if usual is None or not _is_as_expected(usual):
            yield
            return
        libraries = codegen._library_class = _Libraries(usual, kernel_name)
        try:
            yield
        finally:
            del codegen._library_class
        if libraries.are_unresolved:
            raise Unresolved


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
        self.are_unresolved = False

    def __call__(self, codegen: Any, name: str, **options: Any) -> Any:
        if name == self._kernel_name:
            return _kernel_library(self._usual)(codegen, name, **options)
        library = _linked_library(self._usual)(codegen, name, **options)
        library.libraries = self
        return library

    def __getattr__(self, name: str) -> Any:
        return getattr(self._usual, name)


@cache
def _kernel_library(usual: Any) -> Any:
    class KernelLibrary(usual):  # type: ignore[misc]
        """The code of a kernel with all functions that it reaches."""

        def finalize(self) -> None:
            _link(self, self._linking_libraries, "internal")  # other kernels may have the same
            self._linking_libraries.clear()
            super().finalize()

        def _optimize_final_module(self) -> None:
            # Numba runs all passes twice, to remove counts of references; kernels have none.
            manager, builder = self._codegen._module_pass_manager()
            manager.run(self._final_module, builder)

    return KernelLibrary


@cache
def _linked_library(usual: Any) -> Any:
    class LinkedLibrary(usual):  # type: ignore[misc]
        """Code that is linked into the kernel that reaches it, and never called from Python."""

        def __init__(self, codegen: Any, name: str) -> None:
            super().__init__(codegen, name)
            self.modules: list[Any] = []  # of LLVM, without what they call
            self.exported: list[str] = []  # their functions that others may call
            self.libraries: Any = None  # of the kernel for which it was compiled
            self._is_linked = False

        def add_ir_module(self, ir_module: Any) -> None:
            from llvmlite import binding
            from numba.core import cgutils

            self._raise_if_finalized()
            text = str(ir_module)
            self.libraries.are_unresolved |= _UNRESOLVED in text
            module = binding.parse_assembly(cgutils.normalize_ir_text(text))
            module.data_layout = self._codegen._data_layout
            self.modules.append(module)
            for function in module.functions:
                if not function.is_declaration and function.linkage == binding.Linkage.external:
                    self.exported.append(function.name)
                    # LLVM takes one of several with the same name, and leaves none of them out.
                    function.linkage = "weak_odr"

        def finalize(self) -> None:
            self._raise_if_finalized()
            self._finalized = True

        def _get_module_for_linking(self) -> Any:
            # Numba keeps what it compiled of its own functions, and links it into other code, too.
            if not self._is_linked:
                _link(self, [self], "external")
                self._is_linked = True
            return super()._get_module_for_linking()

        def get_pointer_to_function(self, name: str) -> int:
            return 0

        @property
        def codegen(self) -> Any:
            return _WithoutEnvironments(self._codegen)

    return LinkedLibrary


def _link(into: Any, libraries: list[Any], linkage: str) -> None:
    """Link everything that these libraries reach into a library, each piece of code once.

    Numba links what a function reaches into the function, and all of it again into its callers.
    """
    reached: dict[Any, None] = {}  # in order
    waiting = list(libraries)
    while waiting:
        library = waiting.pop()
        if library not in reached:
            reached[library] = None
            if hasattr(library, "modules"):
                waiting += library._linking_libraries
    own = [library for library in reached if hasattr(library, "modules")]
    whole = [library for library in reached if not hasattr(library, "modules")]
    for library in own:
        for module in library.modules:
            into._final_module.link_in(module, preserve=True)
    # Code of others comes last, because LLVM leaves out what nothing calls that was linked before.
    for library in whole:
        into._final_module.link_in(library._get_module_for_linking(), preserve=True)
    for library in reached:
        into._reload_init.update(library._reload_init)
    for name in {name for library in own for name in library.exported}:
        into._final_module.get_function(name).linkage = linkage


class _WithoutEnvironments:
    """Numba's code generator for code that is not loaded, and so has no environment."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing: code that is loaded from a cache has no environment either."""
