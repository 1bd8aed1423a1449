"""Signatures (Ed25519): who made a model file or a record, and that nobody has altered it since.

A file's signature stands beside it, in `model.dicoflex.sig`: the file stays as it is. A record's signature stands in
the record. What is signed is a SHA-256 digest, with a word before it so that one sort of signature can't pass for the
other. Keys are PEM files. Needs the package cryptography, `pip install 'dicoflex[sign]'`, imported when first used.
"""

from __future__ import annotations

__all__ = ["Key", "check_file", "check_record", "make_keys", "sign_file", "sign_record", "verify_file"]

import base64
import binascii
import hashlib
import json
import os
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dicoflex.errors import SettingError, SignatureError
from dicoflex.runtime import strict_json
from dicoflex.runtime.whole_files import read_bytes, write_text

Key = str | os.PathLike[str] | bytes
ENDING = ".sig"
ALGORITHM = "Ed25519"
FILE, RECORD = b"dicoflex file\n", b"dicoflex record\n"
MOST_TEXT = 2**14
MOST_BYTES = 2**30


def make_keys(private: str | os.PathLike[str], public: str | os.PathLike[str]) -> None:
    """Write a new pair of keys; the private one for its owner's eyes alone. Nothing is overwritten."""
    form = _cryptography().serialization
    key = _cryptography().Ed25519PrivateKey.generate()
    secret = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    shown = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    for path, data, mode in ((private, secret, 0o600), (public, shown, 0o666)):
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        except OSError as error:
            raise SettingError(f"{path} can't be written: {error.strerror}; choose another name") from None
        with open(descriptor, "wb") as file:
            file.write(data)


# -- files ---------------------------------------------------------------------------------------------------------


def sign_file(path: str | os.PathLike[str], *, key: Key) -> Path:
    """Write the signature of a file beside it; returns where. key: a private key, as a PEM file or its bytes."""
    made = _signed(FILE, read_bytes(path, most=MOST_BYTES), _private(key))
    beside = Path(f"{os.fspath(path)}{ENDING}")
    write_text(beside, json.dumps(made, indent=2) + "\n")
    return beside


def verify_file(path: str | os.PathLike[str], *, trust: Key) -> str:
    """The trusted key's name, if the file was signed with its private key; else a `SignatureError`."""
    return check_file(path, read_bytes(path, most=MOST_BYTES), trust)


def check_file(path: str | os.PathLike[str], data: bytes, trust: Key) -> str:
    """As `verify_file`, for the bytes that were read from `path`."""
    beside = f"{os.fspath(path)}{ENDING}"
    public = _public(trust)
    if not os.path.exists(beside):
        raise SignatureError(f"{path} is not signed: there is no {beside}; ask for it, or load without trust")
    try:
        made = strict_json.loads(read_bytes(beside, most=MOST_TEXT, error=SignatureError))
    except ValueError as error:
        raise SignatureError(f"{beside} is no signature ({error}); sign the file again") from None
    return _check(FILE, data, made, public, str(path))


# -- records -------------------------------------------------------------------------------------------------------


def sign_record(record: dict[str, Any], *, key: Key) -> dict[str, Any]:
    """The record with its signature; an earlier one is replaced."""
    own = _unsigned(record)
    return {**own, "signature": _signed(RECORD, _canonical(own), _private(key))}


def check_record(record: Any, *, trust: Key, name: str = "the record") -> str:
    """The trusted key's name, if the record was signed with its private key; else a `SignatureError`."""
    if not isinstance(record, dict) or "signature" not in record:
        raise SignatureError(f"{name} is not signed; make it with to_json(key=...), or sign it")
    return _check(RECORD, _canonical(_unsigned(record)), record["signature"], _public(trust), name)


def _unsigned(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != "signature"}


def _canonical(record: dict[str, Any]) -> bytes:
    """One text for one record, however it was laid out."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


# -- keys and the signatures themselves ----------------------------------------------------------------------------


def _signed(sort: bytes, data: bytes, private: Any) -> dict[str, str]:
    signature = private.sign(sort + hashlib.sha256(data).digest())
    return {
        "algorithm": ALGORITHM,
        "key": _name(private.public_key()),
        "signature": base64.b64encode(signature).decode(),
    }


def _check(sort: bytes, data: bytes, made: Any, public: Any, name: str) -> str:
    try:
        claimed = str(made["key"])[:16]
        signature = base64.b64decode(made["signature"], validate=True)
        # One signature has one text: neither more fields nor other last bits of the base64 pass for it.
        is_ours = made == {
            "algorithm": ALGORITHM,
            "key": made["key"],
            "signature": base64.b64encode(signature).decode(),
        }
    except (KeyError, TypeError, ValueError, binascii.Error):
        is_ours = False
    if not is_ours:
        raise SignatureError(f"{name}: its signature is none; sign it again")
    own = _name(public)
    try:
        public.verify(signature, sort + hashlib.sha256(data).digest())
    except _cryptography().InvalidSignature:
        if claimed != own:
            who = f"it says that it was signed with the key {claimed}, and {own} is trusted"
            raise SignatureError(f"{name} is not signed by whom is trusted: {who}; ask for the right key") from None
        raise SignatureError(f"{name} was altered after it was signed; get it again from where it was made") from None
    if made["key"] != own:
        raise SignatureError(f"{name} was altered after it was signed: it names another key; get it again")
    return own


def _name(public: Any) -> str:
    """A short name for a public key, to tell keys apart in messages."""
    return hashlib.sha256(public.public_bytes_raw()).hexdigest()[:16]


def _private(key: Key) -> Any:
    form = _cryptography().serialization
    try:
        found = form.load_pem_private_key(_pem(key), password=None)
    except (ValueError, TypeError) as error:
        raise SettingError(f"the key is no private key in PEM ({error}); make one with dicoflex keygen") from None
    if not isinstance(found, _cryptography().Ed25519PrivateKey):
        raise SettingError(f"the key is none for {ALGORITHM}; make one with dicoflex keygen")
    return found


def _public(trust: Key) -> Any:
    form = _cryptography().serialization
    try:
        found = form.load_pem_public_key(_pem(trust))
    except (ValueError, TypeError) as error:
        raise SettingError(f"trust is no public key in PEM ({error}); give the one that dicoflex keygen made") from None
    if not isinstance(found, _cryptography().Ed25519PublicKey):
        raise SettingError(f"trust is no key for {ALGORITHM}; give the public key that dicoflex keygen made")
    return found


def _pem(key: Key) -> bytes:
    return key if isinstance(key, bytes) else read_bytes(key, most=MOST_TEXT, error=SettingError)


@cache
def _cryptography() -> SimpleNamespace:
    """What is needed of the package, imported when first used."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    except ImportError:
        raise SettingError("signatures need the package cryptography; pip install 'dicoflex[sign]'") from None
    return SimpleNamespace(
        InvalidSignature=InvalidSignature,
        serialization=serialization,
        Ed25519PrivateKey=Ed25519PrivateKey,
        Ed25519PublicKey=Ed25519PublicKey,
    )
