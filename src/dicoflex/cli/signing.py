"""The commands about signatures: keygen, sign, verify."""

from __future__ import annotations

__all__ = ["COMMANDS"]

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from dicoflex.cli.messages import note
from dicoflex.errors import SettingError, SignatureError
from dicoflex.runtime import strict_json
from dicoflex.runtime.printable import counted
from dicoflex.runtime.whole_files import read_bytes, write_text

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
    trust: Annotated[Path | None, typer.Option(help="Public key of whom you trust.", show_default=False)] = None,
    model: Annotated[
        Path | None, typer.Option(help="Model file to ask a receipt's question again.", show_default=False)
    ] = None,
) -> None:
    """Check a signature by whom you trust, or a receipt by asking its model again; exit code 3 if it does not hold."""
    from dicoflex.signatures import check_record, verify_file

    if trust is None and model is None:
        raise SettingError("there is nothing to check by; give --trust and a public key, or --model for a receipt")
    is_record = file.suffix == ".json"
    if trust is not None:
        name = check_record(_record(file), trust=trust, name=str(file)) if is_record else verify_file(file, trust=trust)
        print(f"{file}: signed with the key {name}, not altered since")
    if model is not None:
        from dicoflex.explorer.receipt import UNCOVERED, check_receipt
        from dicoflex.model import Model

        count = check_receipt(_record(file), Model.load(model))
        print(f"{file}: the model gives {counted(count, 'plan')} again, bit for bit")
        if trust is None:
            print(
                f"not covered without --trust: {', '.join(UNCOVERED)}; anybody can change these in an unsigned receipt"
            )


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
