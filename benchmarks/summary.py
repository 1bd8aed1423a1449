"""One page in plain words: where we agree with the paper, where we do better, where not, and why."""

from __future__ import annotations

__all__ = ["page"]

from collections.abc import Mapping, Sequence

from benchmarks.cells import Result
from benchmarks.pages import Finding, head

SECTIONS = {
    "agree": ("Where we agree", "What the paper says holds in our runs as well."),
    "better": ("Where we do better", "Against the paper's figures, or against every method measured beside ours."),
    "not": ("Where we don't", "Cells in which another method is ahead of the default generator."),
    "differ": (
        "Where our figures tell another story",
        "Statements of the paper that our runs don't bear out, or leave empty.",
    ),
}


def page(found: Mapping[str, tuple[Sequence[Result], Sequence[Finding]]], command: str) -> str:
    """All findings, by verdict, with a link to the page that each comes from."""
    results = [result for some, _ in found.values() for result in some]
    text = (
        "Every sentence below is made from the results on the linked pages. The black boxes, the splits' random parts "
        "and the trainings are ours, so single figures differ from the paper's; what can be compared is who is ahead, "
        f"and in which direction a setting moves a score. {_chance(results)}"
    )
    lines = [head("The paper and our runs", text, [_without_cut(r) for r in results], command)]
    for verdict, (title, meaning) in SECTIONS.items():
        said = [(name, f.text) for name, (_, findings) in found.items() for f in findings if f.verdict == verdict]
        lines.append(f"\n## {title}\n\n{meaning}\n\n")
        lines.append("".join(f"- {sentence} ([{name}]({name}.md))\n" for name, sentence in said) or "Nothing.\n")
    return "".join(lines)


def _chance(results: Sequence[Result]) -> str:
    """How far small differences can be trusted."""
    seeds = len({result.cell.seed for result in results})
    if seeds > 1:
        return f"Figures are means over {seeds} seeds."
    return "There is one seed, so nothing here tells a small difference from chance."


def _without_cut(result: Result) -> Result:
    """The result without its mark of lost time, which stands on its own page."""
    return Result(result.cell, {}, result.failed)
