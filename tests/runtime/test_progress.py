from __future__ import annotations

import sys

import pytest

from dicoflex.runtime.progress import Progress


class Terminal:
    """A surrogate for stderr that says whether someone is watching."""

    def __init__(self, watching: bool) -> None:
        self.watching = watching

    def isatty(self) -> bool:
        return self.watching


@pytest.mark.parametrize("watching", [True, False])
def test_a_bar_is_shown_on_a_terminal_unless_told_otherwise(watching: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal(watching))
    assert Progress().visible is watching
    assert Progress(True).visible is True
    assert Progress(False).visible is False


def test_silence(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(False).stage("Neighbours", 10) as advance:
        advance(4)
        advance(6, "loss 1.2")
        advance(1, note="done")
    assert capsys.readouterr() == ("", "")


def test_a_bar_is_drawn_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(True).stage("Neighbours", 10) as advance:
        advance(4)
        advance(6, note="loss 1.25")
        advance(0)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Neighbours" in shown.err
    assert "100 %" in shown.err
    assert "loss 1.25" in shown.err


@pytest.mark.parametrize("verbose", [True, False])
def test_an_error_inside_a_stage_comes_out(verbose: bool) -> None:
    def interrupted() -> None:
        with Progress(verbose).stage("Training", 3) as advance:
            advance(1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()


def test_stages_follow_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(True)
    for name in ("Neighbours", "Training"):
        with progress.stage(name, 1) as advance:
            advance(1)
    shown = capsys.readouterr().err
    assert shown.index("Neighbours") < shown.index("Training")
