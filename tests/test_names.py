"""What crosses a module is listed in its `__all__`, and nothing with a leading underscore crosses one."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What users call by name, and the way into the command line.
PUBLIC = {
    "dicoflex",
    "dicoflex.batch",
    "dicoflex.lake",
    "dicoflex.spark",
    "dicoflex.errors",
    "dicoflex.metrics",
    "dicoflex.datasets",
    "dicoflex.cli",
}


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted((ROOT / "src").rglob("*.py"))}
CORE = "dicoflex._core"
"""The compiled module: no file of Python, and for this package alone."""


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Every name that a file takes from a module of ours, by `from module import name` or by `module.name`."""
    modules = {}
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "dicoflex":
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole == CORE:
                    continue
                if whole in MODULES:
                    modules[alias.asname or alias.name] = whole
                else:
                    yield node.module, alias.name
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield modules[node.value.id], node.attr


@cache
def taken(*folders: str) -> dict[str, set[str]]:
    """The names that files of some folders take from each module."""
    found: dict[str, set[str]] = defaultdict(set)
    for folder in folders:
        for path in (ROOT / folder).rglob("*.py"):
            for module, name in imports(path):
                found[module].add(name)
    return found


def listed(module: str) -> list[str]:
    """The names in a module's `__all__`."""
    for node in tree_of(MODULES[module]).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            found: list[str] = ast.literal_eval(node.value)
            return found
    return []


def types_of(module: str) -> set[str]:
    """Names in the annotations, attributes and bases of what is listed: whoever calls it gets or gives such things."""
    found = set()
    for node in tree_of(MODULES[module]).body:
        names = [t.id for t in _targets(node) if isinstance(t, ast.Name)] + [getattr(node, "name", "")]
        if set(names) & set(listed(module)):
            parts = [part for part in ast.walk(node) if isinstance(part, ast.arg | ast.AnnAssign | ast.FunctionDef)]
            hints = [getattr(part, name, None) for part in parts for name in ("annotation", "returns", "value")]
            hints += [*getattr(node, "bases", []), *([node.value] if isinstance(node, ast.Assign) else [])]
            found |= {leaf.id for hint in hints if hint for leaf in ast.walk(hint) if isinstance(leaf, ast.Name)}
    return found


def named_by(module: str) -> set[str]:
    """Texts in the packages around a module, which import by name what is asked for; `__all__` does not count."""
    parts = module.split(".")
    packages = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
    packages = [name for name in packages if MODULES[name].name == "__init__.py"]
    nodes = [node for name in packages for node in ast.walk(tree_of(MODULES[name]))]
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    lists = [name for package in packages for name in listed(package)]
    return {text for text in texts if texts.count(text) > lists.count(text)}


def _targets(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign) else []


def test_what_others_import_is_listed() -> None:
    crossing = taken("src", "benchmarks", "docs")
    assert {m: sorted(crossing[m] - set(listed(m))) for m in MODULES if crossing[m] - set(listed(m))} == {}


def test_what_is_listed_is_used() -> None:
    """By other modules, by benchmarks, by a test of its own, or as the type of something that is."""
    used = taken("src", "benchmarks", "docs", "tests")
    unused = {m: set(listed(m)) - used[m] - types_of(m) - named_by(m) for m in MODULES if m not in PUBLIC}
    assert {module: sorted(names) for module, names in unused.items() if names} == {}


def test_what_is_listed_is_public_and_listed_once() -> None:
    names = {module: listed(module) for module in MODULES}
    assert [m for m, own in names.items() if len(own) != len(set(own))] == []
    private = [f"{m}.{n}" for m, own in names.items() for n in own if n.startswith("_") and n != "__version__"]
    assert private == []


def test_nothing_private_crosses_a_module() -> None:
    crossing = [
        f"{name_of(path)} takes {name} from {module}"
        for path in MODULES.values()
        for module, name in imports(path)
        if name.startswith("_") and not name.startswith("__")
    ]
    assert crossing == []


def test_a_module_opens_with_its_names() -> None:
    """The sentence, `__all__`, then imports; a module that offers nothing has the sentence alone."""
    assert [module for module in MODULES if not _opens_well(tree_of(MODULES[module]).body)] == []


def _opens_well(body: list[ast.stmt]) -> bool:
    if not isinstance(body[0], ast.Expr):
        return False
    return len(body) == 1 or (
        ast.unparse(body[1]) == "from __future__ import annotations" and ast.unparse(body[2]).startswith("__all__ = ")
    )
