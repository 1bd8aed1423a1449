"""What a folder of answers was made with: a run with other settings is refused, and one with the same goes on."""

from __future__ import annotations

__all__ = ["MANIFEST", "SUCCESS", "check_manifest", "settings_of"]

import hashlib
import json
from importlib.metadata import version
from typing import Any

from dicoflex.batch.work import Job
from dicoflex.errors import SettingError

MANIFEST, SUCCESS = "_dicoflex.json", "_SUCCESS"


def settings_of(job: Job, part_rows: int) -> dict[str, Any]:
    """All that decides what the files of a run hold."""
    listing = [[file.path, file.size, file.rows] for file in job.source.files]
    return {
        "dicoflex": version("dicoflex"),
        "model": job.model.fingerprint,
        "id": job.id,
        "part_rows": part_rows,
        "files": len(listing),
        "rows": job.source.rows,
        "input": hashlib.sha256(json.dumps(listing).encode()).hexdigest(),
        **{f"request.{name}": value for name, value in job.request.model_dump(mode="json").items()},
    }


def check_manifest(job: Job, settings: dict[str, Any]) -> None:
    """Refuse a folder that another run has written to; say in a new one what it will hold."""
    found, out = job.out.read_json(MANIFEST), job.out.uri
    if found is None:
        if job.out.names("answers"):
            raise SettingError(f"{out} holds answers and no {MANIFEST} that says which; choose another folder")
        job.out.put_json(MANIFEST, settings)
        return
    now = json.loads(json.dumps(settings))
    name = next((name for name in now if found.get(name) != now[name]), None)
    if name == "input":
        raise SettingError(f"{out} holds a run over other files, or other sizes of them; choose another folder")
    if name is not None:
        raise SettingError(
            f"{out} holds a run with other settings: {name} was {found.get(name)!r}, and is {now[name]!r}; "
            "choose another folder, or remove this one"
        )
