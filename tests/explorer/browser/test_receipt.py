"""A receipt: downloaded, checked by another process, printed, and refused once a digit is altered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from explorer.browser.running import COMMAND, SOURCE
from explorer.browser.sight import REFUSED, Sight

LINK = f"#v=1&person={REFUSED}&most=2&freeze=purpose&range.credit_amount=500..6000&seed=0"


def verify(receipt: Path, model: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", COMMAND, "verify", str(receipt), "--model", str(model)]
    env = os.environ | {"PYTHONPATH": str(SOURCE)}
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False)


def test_a_receipt_is_checked_and_an_altered_one_is_not(
    sight: Callable[..., Sight], files: dict[str, Path], tmp_path: Path
) -> None:
    """Check 19."""
    seen = sight(LINK, accept_downloads=True)
    seen.settle()
    plan = next(one for one in seen.plans() if one.chosen)
    seen.page.get_by_role("button", name="Receipt", exact=True).first.click()
    with seen.page.expect_download() as told:
        seen.page.get_by_role("button", name="Download JSON").click()
    path = tmp_path / told.value.suggested_filename
    told.value.save_as(path)
    record = json.loads(path.read_text(encoding="utf-8"))
    assert path.name == f"receipt-{REFUSED}.json"
    assert len(record["plans"]) == 1
    checked = verify(path, files["model"])
    assert checked.returncode == 0, checked.stdout + checked.stderr
    altered = tmp_path / "altered.json"
    altered.write_text(path.read_text(encoding="utf-8").replace('"seed": 0', '"seed": 1', 1), encoding="utf-8")
    assert verify(altered, files["model"]).returncode != 0

    seen.page.emulate_media(media="print")
    paper = seen.page.locator("dialog .paper").inner_text()
    assert record["model"] in paper or record["model"]["fingerprint"] in paper
    assert "purpose stays as it is" in paper
    assert "at most 2 changes" in paper
    assert all(value in paper for value in plan.changes.values())
    assert not seen.page.locator("dialog button").first.is_visible()
    assert seen.page.pdf()[:4] == b"%PDF"


def test_saved_plans_are_compared_and_kept_over_a_reload(sight: Callable[..., Sight]) -> None:
    seen = sight(LINK)
    seen.settle()
    for letter in "AB":
        seen.page.get_by_role("button", name=f"Save plan {letter}").click()
    seen.page.reload()
    seen.settle()
    seen.page.locator(".handle", has_text="Saved (2)").click()
    table = seen.page.locator("table.compare")
    assert table.locator("thead th").count() == 3
    table.get_by_role("button", name="Remove saved plan 1").click()
    assert table.locator("thead th").count() == 2
