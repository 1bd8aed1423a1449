"""Makes the small models that ship with the package : `python tests/recording/example_models.py`."""

from __future__ import annotations

__all__ = ["main"]

from pathlib import Path

import dicoflex
from dicoflex import DiCoFlex
from recording.record import KEY, applicants, jagged, smooth

FOLDER = Path(dicoflex.__file__).parent / "examples" / "models"
QUICK = {"training": {"min_steps": 0, "epochs": 2}, "fit_config": {"passes": 1, "rounds": 0}}
SMALL = {"hidden": 8, "head": 8}
FLOW = {"layers": 2, "hidden_features": 8}
MODELS = {
    "perceptron": (smooth, 240, {"generator_config": SMALL, "coherence": True}),
    "trees": (jagged, 900, {"generator_config": SMALL, "coherence": True}),
    "flow": (smooth, 240, {"generator": "maf", "generator_config": FLOW}),
    "kde": (smooth, 60, {"generator": "kde"}),
}


def main() -> None:
    """Fit and write them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (black_box, n, settings) in MODELS.items():
        rows = applicants(n, 0)
        labels = ["yes" if p > 0.5 else "no" for p in black_box(rows)[:, 1]]
        judge = {} if "generator" in settings else {"predict_proba": black_box}
        kept = KEY if settings.get("generator") == "kde" else False
        fitted = DiCoFlex(random_state=0, **QUICK, **settings).fit(rows, labels, remember_rows=kept, **judge)
        fitted.save(FOLDER / f"{name}.dicoflex")
        print(name, fitted.model_.surrogate.kind, (FOLDER / f"{name}.dicoflex").stat().st_size)


if __name__ == "__main__":
    main()
