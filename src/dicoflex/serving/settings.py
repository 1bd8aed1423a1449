"""What a server is told when it starts: where it listens, what it serves, and how much it takes at once."""

from __future__ import annotations

__all__ = ["LOOPBACK", "Settings"]

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, model_validator

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Settings(BaseModel):
    """How to serve; what would be unsafe is refused.

    models: a folder of model files, or one of them. host, port: where to listen; another address than this machine's
    own needs `keys`, or `open`. workers: processes. keys: a file of who may ask. trust: a public key that every model
    file must be signed with. audit: a folder for the log of all answers; audit_values: with the rows and answers
    themselves; audit_key: a private key to sign it with. origins: pages of which other sites may ask from a browser.
    hosts: names that the server is called by; None are those of this machine where it listens to no other, else any.

    max_…: the most that one request may ask for; max_waiting: requests that wait at the same time; max_seconds: how
    long one may take. gather: answer requests that wait together. drain_seconds: how long a server that ends still
    takes requests, grace_seconds: how long those may then take. poll_seconds: how often the folder is looked at.

    >>> Settings(models="models").port
    8000
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    models: Path
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    metrics_port: int | None = Field(default=None, ge=0, le=65535)
    workers: int = Field(default=1, ge=1, le=256)
    keys: Path | None = None
    open: bool = False
    trust: Path | None = None
    audit: Path | None = None
    audit_values: bool = False
    audit_key: Path | None = None
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] | None = None
    max_body: int = Field(default=2_000_000, ge=1)
    max_lines_body: int = Field(default=64_000_000, ge=1)
    max_rows: int = Field(default=1_000, ge=1)
    max_lines: int = Field(default=100_000, ge=1)
    max_n: int = Field(default=100, ge=1)
    max_answers: int = Field(default=20_000, ge=1)
    max_waiting: int = Field(default=256, ge=1)
    max_seconds: float = Field(default=10.0, gt=0)
    gather: bool = True
    drain_seconds: float = Field(default=1.0, ge=0)
    grace_seconds: int = Field(default=30, ge=1)
    poll_seconds: float = Field(default=2.0, gt=0)

    @model_validator(mode="after")
    def _safe(self) -> Settings:
        if self.host not in LOOPBACK and self.keys is None and not self.open:
            raise ValueError(
                f"to listen on {self.host} without keys would let anybody ask; give a file of keys with --keys, "
                "or say that this is meant with --open"
            )
        if "*" in self.origins:
            raise ValueError(
                "an origin of '*' would let every page ask; name the pages' own, such as https://a.example"
            )
        if self.audit is None and (self.audit_values or self.audit_key):
            raise ValueError("there is no audit log to keep values in or to sign; name its folder with --audit")
        return self

    @property
    def host_names(self) -> tuple[str, ...] | None:
        """The names that a request may call the server by; None where any will do."""
        if self.hosts is not None:
            return self.hosts
        return LOOPBACK if self.host in LOOPBACK else None
