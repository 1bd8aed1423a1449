"""Ray, Spark and an object store, each started on loopback by its test: the same hash as in one process."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dicoflex import Explainer, Request
from dicoflex.batch import BatchReport, explain_files
from dicoflex.batch.tables import digest
from dicoflex.batch.work import TABLES

TwoFiles = Callable[[Path], Path]
PART = 15
SECONDS = 120

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def source(two_files: TwoFiles, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_files(tmp_path_factory.mktemp("clusters") / "in")


@pytest.fixture(scope="module")
def inline(explainer: Explainer, source: Path, wish: Request) -> BatchReport:
    out = source.parent / "inline"
    return explain_files(explainer, source, out, wish, id="customer", engine="inline", part_rows=PART)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A Ray cluster of a head without processors and two nodes with one each; workers find this package."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    made.nodes = [made.add_node(num_cpus=1, object_store_memory=100 * 2**20) for _ in range(2)]
    yield made
    import ray

    ray.shutdown()
    made.shutdown()


def test_a_ray_cluster_of_which_a_node_dies(
    cluster: Any, explainer: Explainer, source: Path, wish: Request, tmp_path: Path, inline: BatchReport
) -> None:
    out, killed = tmp_path / "out", threading.Event()

    def kill() -> None:
        until = time.monotonic() + SECONDS
        while not list(out.glob("answers/part-*")) and time.monotonic() < until:
            time.sleep(0.01)
        cluster.remove_node(cluster.nodes[0], allow_graceful=False)
        killed.set()

    killer = threading.Thread(target=kill)
    killer.start()
    report = explain_files(
        explainer, source, out, wish, id="customer", engine="ray", address=cluster.address, part_rows=PART
    )
    killer.join()
    assert killed.is_set()
    assert report.hash == inline.hash
    assert report.rows == inline.rows


def has_java() -> bool:
    return shutil.which("java") is not None or "JAVA_HOME" in os.environ


@pytest.mark.skipif(not has_java(), reason="Spark needs Java, and there is none on this machine")
def test_spark_has_the_same_tables(
    explainer: Explainer, source: Path, wish: Request, inline: BatchReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    from dicoflex import spark

    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.driver.host": "127.0.0.1"}
    builder = SparkSession.builder.master("local[2]").config(map=settings)
    session = builder.getOrCreate()
    try:
        df = session.read.parquet(str(source / "*.parquet")).repartition(2)
        content = 0
        for seed, name in enumerate(TABLES):
            found = spark.explain(df, explainer, wish, id="customer", table=name).toArrow()
            content += digest(found, seed)
            assert found.num_rows == getattr(inline, name)
        assert f"{content % 2**64:016x}" == inline.hash
    finally:
        session.stop()


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket of an S3 server on loopback, as the rest of a URI with its options."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = "import sys; from moto.server import main; main(sys.argv[1:])"
    server = subprocess.Popen(
        [sys.executable, "-c", code, "-H", "127.0.0.1", "-p", str(port)], stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            assert server.poll() is None
            time.sleep(0.05)
        yield f"?scheme=http&endpoint_override=127.0.0.1:{port}&region=us-east-1&allow_bucket_creation=true"
    finally:
        server.terminate()
        server.wait(timeout=10)


def test_an_object_store_in_and_out(
    bucket: str, explainer: Explainer, source: Path, wish: Request, inline: BatchReport
) -> None:
    from pyarrow import fs

    system, root = fs.FileSystem.from_uri(f"s3://bank/in{bucket}")
    system.create_dir("bank")
    for path in source.glob("*.parquet"):
        with system.open_output_stream(f"{root}/{path.name}") as sink:
            sink.write(path.read_bytes())
    given: dict[str, Any] = {"id": "customer", "engine": "inline", "part_rows": PART}
    out = f"s3://bank/out{bucket}"
    report = explain_files(explainer, f"s3://bank/in{bucket}", out, wish, **given)
    assert report.hash == inline.hash
    again = explain_files(explainer, f"s3://bank/in{bucket}", out, wish, **given)
    assert (again.resumed, again.hash) == (report.parts, inline.hash)
    one = explain_files(explainer, f"s3://bank/in/a.parquet{bucket}", f"s3://bank/one{bucket}", wish, **given)
    assert one.rows == report.rows // 2
    # Half an object is no part, and it is written again.
    name = f"bank/out/answers/{'part-00000-000000000000-000000000015'}.parquet"
    with system.open_output_stream(name) as sink:
        sink.write(b"PAR1 half")
    assert explain_files(explainer, f"s3://bank/in{bucket}", out, wish, **given).resumed == report.parts - 1
    with system.open_input_file(name) as stream:
        assert len(pd.read_parquet(stream)) > 0
