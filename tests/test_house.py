"""The shape of the house: no file, function or call that has grown too large."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1] / "src" / "dicoflex"
FILES = sorted(ROOT.rglob("*.py"))
MOST_LINES, MOST_PARAMETERS, MOST_BY_POSITION = 400, 8, 6
# Kernels that inline each other stay in one file; what is said here of functions and calls is not for them.
LONG = {"neighbours.py", "generators/mixed/kernels.py", "generators/mixed/lookahead.py"}
FACADE_LINES, FACADE_IMPORTS = 300, 9


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def is_kernel(function: ast.FunctionDef) -> bool:
    text = " ".join(ast.unparse(decorator) for decorator in function.decorator_list)
    return "compiled" in text or "lean" in text or "kernel" in text or ".command" in text


def outside_kernels(node: ast.AST) -> Iterator[ast.AST]:
    """Everything below a node but what is compiled, or a command's signature."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.FunctionDef) and is_kernel(child)):
            yield from outside_kernels(child)


def calls_kernel(call: ast.Call, kernels: set[str]) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in kernels


@cache
def kernel_names() -> set[str]:
    """The compiled functions of all files, and the records that are laid out for them."""
    found = set()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and is_kernel(node):
                found.add(node.name)
    return found


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_file_is_long(path: Path) -> None:
    if name_of(path) not in LONG:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_function_takes_many_parameters(path: Path) -> None:
    many = []
    if name_of(path) in LONG:
        return
    for node in outside_kernels(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            own = node.args
            count = len([a for a in (*own.posonlyargs, *own.args, *own.kwonlyargs) if a.arg not in ("self", "cls")])
            if count > MOST_PARAMETERS:
                many.append(f"{node.name} takes {count}")
    assert [text for text in many if text.split()[0] not in PUBLIC] == []


# The contract's own signatures, and what makes a Request of them.
PUBLIC = {"__init__", "explain", "sample", "of", "score"}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_call_passes_much_by_position(path: Path) -> None:
    if name_of(path) in LONG:
        return
    kernels = kernel_names()
    many = [
        f"line {node.lineno}: {len(node.args)}"
        for node in outside_kernels(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and len(node.args) > MOST_BY_POSITION and not calls_kernel(node, kernels)
    ]
    assert many == []


def test_the_explainer_is_a_facade() -> None:
    text = (ROOT / "explainer.py").read_text(encoding="utf-8")
    modules = {node.module for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom) and node.module}
    assert len(text.splitlines()) <= FACADE_LINES
    assert len([name for name in modules if name.startswith("dicoflex")]) <= FACADE_IMPORTS
