"""The commands about signatures: keygen, sign, verify."""

from __future__ import annotations

__all__ = ["COMMANDS"]

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from dicoflex.cli.messages import note
from dicoflex.errors import SignatureError
from dicoflex.runtime import strict_json
from dicoflex.runtime.regular_files import read_bytes
from dicoflex.runtime.whole_files import write_text

MOST_BYTES = 2**30
Signed = Annotated[Path, typer.Argument(help="Model file, or a record (.json).", show_default=False)]


def keygen(
    private: Annotated[Path, typer.Option(help="File for the private key, for your eyes alone.")] = Path("private.pem"),
    public: Annotated[Path, typer.Option(help="File for the public key, to give away.")] = Path("public.pem"),
) -> None:
    """Make a pair of keys (Ed25519): one to sign with, one to check with."""
    from dicoflex.signatures import make_keys

    make_keys(private, public)
    note(f"wrote {private}, which signs and is nobody else's, and {public}, which checks")


def sign(
    file: Signed,
    key: Annotated[Path, typer.Option(help="Private key, from 'keygen'.", show_default=False)],
) -> None:
    """Sign a model file (writes FILE.sig beside it) or a record (the signature goes into it)."""
    from dicoflex.signatures import sign_file, sign_record

    if file.suffix != ".json":
        note(f"wrote {sign_file(file, key=key)}")
        return
    record = _record(file)
    write_text(file, json.dumps(sign_record(record, key=key), indent=2, ensure_ascii=False) + "\n")
    note(f"signed {file}")


def verify(
    file: Signed,
    trust: Annotated[Path, typer.Option(help="Public key of whom you trust.", show_default=False)],
) -> None:
    """Check that a model file or a record was signed by whom you trust, and not altered since; else exit code 3."""
    from dicoflex.signatures import check_record, verify_file

    is_record = file.suffix == ".json"
    name = check_record(_record(file), trust=trust, name=str(file)) if is_record else verify_file(file, trust=trust)
    print(f"{file}: signed with the key {name}, not altered since")


COMMANDS = (keygen, sign, verify)


def _record(file: Path) -> dict[str, Any]:
    try:
        found = strict_json.loads(read_bytes(file, most=MOST_BYTES, error=SignatureError))
    except SignatureError:
        raise
    except ValueError as error:
        raise SignatureError(f"{file} is no record ({error}); make one with to_json, or explain --out") from None
    if not isinstance(found, dict):
        raise SignatureError(f"{file} is no record; make one with to_json, or explain --out")
    return found
