"""Named levels of confidence: each says how many retrained models would agree, and what it costs."""

from __future__ import annotations

import re
from collections.abc import Callable

from explorer.browser.sight import Sight


def test_a_level_sets_the_number_and_says_what_it_means(sight: Callable[..., Sight]) -> None:
    seen = sight("#v=1&person=113&most=any&seed=0")
    seen.settle()
    wishes = seen.page.get_by_role("region", name="Wishes")
    level, number = wishes.get_by_label("lasting"), wishes.get_by_label("At least so many percent sure")
    assert level.input_value() == "safe"
    assert re.search(r"\d+( or \d+)? of 10 retrained models would still say yes", wishes.inner_text())
    safe = float(number.input_value())
    level.select_option("just")
    seen.settle()
    just = float(number.input_value())
    assert just < safe
    assert "times as far" not in wishes.inner_text()
    level.select_option("sure")
    seen.settle()
    assert float(number.input_value()) >= safe
    percent = [float(re.sub(r"[^\d.]", "", plan.percent)) for plan in seen.plans()]
    assert min(percent) >= float(number.input_value()) - 1
    # Another number is no level.
    number.fill(str((just + safe) / 2))
    number.press("Enter")
    seen.settle()
    assert level.input_value() == ""
    assert "retrained models" not in wishes.inner_text()
