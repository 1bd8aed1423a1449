"""Single constraints, each with a short name and a sentence."""

from __future__ import annotations

__all__ = ["Single", "singles"]

from typing import TYPE_CHECKING, Any, NamedTuple

from dicoflex.constraints.words import cost_text, either, moves_text, plain

if TYPE_CHECKING:
    from dicoflex.constraints.parts import Range
    from dicoflex.constraints.statement import Constraints


class Single(NamedTuple):
    """One constraint of a set: the field it stands in, its feature if it has one, a short name and a sentence."""

    kind: str
    feature: Any
    label: str
    text: str


def singles(given: Constraints) -> list[Single]:
    """The set taken apart, one item per single constraint, in the order of the fields."""
    found = [Single("frozen", n, f"frozen {n}", f"{n} may not change") for n in given.frozen]
    for n, ranges in given.ranges.items():
        found += [Single("ranges", n, f"range {n} {r.text}", f"{n} {_range_sentence(r)}") for r in ranges]
    for kind in ("increase", "decrease"):
        found += [Single(kind, n, f"{kind} {n}", f"{n} may only {kind}") for n in getattr(given, kind)]
    for n, values in given.allowed.items():
        found.append(Single("allowed", n, f"allowed {n}", f"{n} may only become {either(values)}"))
    for n, values in given.forbidden.items():
        found.append(Single("forbidden", n, f"forbidden {n}", f"{n} may not become {either(values)}"))
    for n, moves in given.transitions.items():
        found.append(Single("transitions", n, f"transitions {n}", f"{n} may go {moves_text(moves)}"))
    if given.max_changes is not None:
        many = "1 feature" if given.max_changes == 1 else f"{given.max_changes} features"
        found.append(Single("max_changes", None, f"max_changes {given.max_changes}", f"at most {many} may change"))
    found += [Single("rules", None, f"rule {text}", f"{text} must hold") for text in given.rules]
    for n, step in given.steps.items():
        text = f"{n} may only change to multiples of {plain(step)}"
        found.append(Single("steps", n, f"step {n} {plain(step)}", text))
    for n, weight in given.cost.items():
        found.append(Single("cost", n, f"cost {n}", f"changing {n} costs {cost_text(weight)}"))
    if given.max_cost is not None:
        most = plain(given.max_cost)
        found.append(Single("max_cost", None, f"max_cost {most}", f"all changes together may cost at most {most}"))
    if given.strict:
        found.append(Single("strict", None, "strict", "ranges and lists of values also bind what does not change"))
    return found


def _range_sentence(limits: Range) -> str:
    if limits.kind == "absolute":
        return f"must be {limits.text}"
    return f"may change by {limits.text}" + (" of its size" if limits.kind == "relative" else "")
