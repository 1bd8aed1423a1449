"""The contract of the image, without docker: what its Dockerfile says holds on a read-only root, as nobody's user."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

import dicoflex

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
LAST = TEXT[TEXT.rindex("\nFROM ") :]
SOURCE = Path(dicoflex.__file__).parents[1]
NOBODY = ("--reuid", "10001", "--regid", "10001", "--clear-groups")
LOCKED = """
mount --make-rprivate / || exit 77
mount -t tmpfs -o size=64m,mode=1777 tmpfs /tmp/dicoflex-tmp || exit 77
awk '{ print $2, $3 }' /proc/mounts | while read -r place kind; do
    case "$kind $place" in *dicoflex-tmp*) ;; proc*|sysfs*|devpts*|devtmpfs*|mqueue*|cgroup*) ;;
    *) mount -o remount,bind,ro "$place" 2>/dev/null ;; esac
done
for place in "$@"; do touch "$place/x" 2>/dev/null && exit 78; done
exec setpriv $WHO --no-new-privs --inh-caps=-all --bounding-set=-all \
    "$PYTHON" -c 'import sys; from dicoflex.cli import main; sys.exit(main(sys.argv[1:]))' serve "$MODELS"
"""


def variables() -> dict[str, str]:
    """The environment that the image sets."""
    text = re.search(r"^ENV (PATH.*?)^USER", LAST, flags=re.DOTALL | re.MULTILINE)
    assert text is not None
    return dict(re.findall(r'(\w+)="?([^\s"]*)"?', text[1]))


def test_what_the_dockerfile_says() -> None:
    assert TEXT.count("\nFROM ") == 2
    assert re.search(r"^USER 10001:10001$", LAST, flags=re.MULTILINE)
    assert "pip" not in LAST
    assert "apt" not in TEXT
    assert 'ENTRYPOINT ["dicoflex", "serve", "/models"]' in LAST
    assert "STOPSIGNAL SIGTERM" in LAST
    assert "/health/ready" in LAST
    assert not re.search(r"(?i)key|secret|token|password", re.sub(r"#.*", "", LAST))
    known = set(
        re.findall(r"variable=\"(\w+)\"", (SOURCE / "dicoflex/cli/serve_command.py").read_text(encoding="utf-8"))
    )
    ours = {name.removeprefix("DICOFLEX_") for name in variables() if name.startswith("DICOFLEX_")}
    assert ours - {"THREADS"} <= known


HADOLINT = shutil.which("hadolint", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.skipif(HADOLINT is None, reason="hadolint is not installed")
def test_hadolint_finds_nothing() -> None:
    assert HADOLINT is not None
    ran = subprocess.run([HADOLINT, str(ROOT / "Dockerfile")], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "")


@pytest.mark.skipif(
    shutil.which("unshare") is None or shutil.which("setpriv") is None
    or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0,
    reason="mount namespaces are not permitted here",
)  # fmt: skip
def test_it_serves_on_a_read_only_root_as_nobody(models: Path) -> None:
    reachable = [SOURCE, models, Path(sys.prefix), Path(sys.executable).resolve()]
    # Where this checkout is for its owner's eyes alone, the owner runs it, without any privilege.
    open_to_all = subprocess.run(["setpriv", *NOBODY, "ls", *map(str, reachable)], capture_output=True).returncode == 0
    port = free_port()
    Path("/tmp/dicoflex-tmp").mkdir(exist_ok=True)
    said = {k: v for k, v in variables().items() if k not in ("PATH", "HOME")}
    env = {
        "PATH": os.environ["PATH"], "PYTHON": sys.executable, "PYTHONPATH": str(SOURCE), "MODELS": str(models), **said,
        "DICOFLEX_HOST": "127.0.0.1", "DICOFLEX_PORT": str(port),
        "HOME": "/tmp/dicoflex-tmp", "TMPDIR": "/tmp/dicoflex-tmp", "WHO": " ".join(NOBODY) if open_to_all else "",
    }  # fmt: skip
    process = subprocess.Popen(["unshare", "-m", "sh", "-c", LOCKED, "sh", str(SOURCE), "/var/tmp"], env=env)
    try:
        assert wait_until_ready(process, port) == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()


def free_port() -> int:
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return int(some.getsockname()[1])


def wait_until_ready(process: subprocess.Popen[bytes], port: int) -> int:
    """The status of what the image's health check asks for."""
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        if process.poll() in (77, 78):
            pytest.skip("mounts can't be made read-only here")
        assert process.poll() is None
        try:
            return int(urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=4).status)
        except OSError:
            time.sleep(0.2)
    raise AssertionError("it did not get ready")
