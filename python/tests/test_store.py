"""Sweeps into an object store: the files of a folder, whatever stopped on the way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import suimon as sm
from pyarrow import fs
from test_sweep import AXES, digests, scenario

moto = pytest.importorskip("moto.server")

KEY = "tester"


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """An S3 of this machine; gives the address of a bucket, with what a worker elsewhere needs to get there."""
    server = moto.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = f"scheme=http&endpoint_override={host}:{port}&region=us-east-1&allow_bucket_creation=true"
    address = f"s3://{KEY}:secret@bucket/{{}}?{options}"
    files, _ = fs.FileSystem.from_uri(address.format(""))
    files.create_dir("bucket")
    yield address
    server.stop()


def download(address: str, folder: Path) -> Path:
    """What is at ``address``, in ``folder``."""
    files, path = fs.FileSystem.from_uri(address)
    fs.copy_files(path, str(folder), files, fs.LocalFileSystem())
    return folder


def test_a_store_gets_the_files_of_a_folder(tmp_path: Path, bucket: str) -> None:
    arguments = (scenario(1.0), AXES)
    sm.sweep(*arguments, seeds=3).to_parquet(tmp_path / "folder")
    address = bucket.format("sweeps/one")
    parts = sm.sweep(*arguments, seeds=3, jobs=2).to_parquet(address)
    assert digests(download(address, tmp_path / "store")) == digests(tmp_path / "folder")
    assert parts.to_polars().sort("run")["run"].to_list() == list(range(1, 28))
    assert parts.pattern("flows") == "s3://bucket/sweeps/one/part-*/flows.parquet"
    assert parts.files()[0] == "bucket/sweeps/one/part-000000/runs.parquet"


def test_what_a_store_lacks_is_made_and_no_more(tmp_path: Path, bucket: str) -> None:
    address = bucket.format("again")
    sm.sweep(scenario(1.0), AXES).to_parquet(address)
    files, path = fs.FileSystem.from_uri(address)
    before = download(address, tmp_path / "before")
    # As a worker leaves it that dies before the last table of a part.
    files.delete_file(f"{path}/part-000004/runs.parquet")
    # Would be written anew with the rest, if anything were.
    with files.open_output_stream(f"{path}/part-000003/flows.parquet") as file:
        file.write(b"untouched")
    sm.sweep(scenario(1.0), AXES).to_parquet(address)
    after = digests(download(address, tmp_path / "after"))
    assert after.pop("part-000003/flows.parquet") != digests(before)["part-000003/flows.parquet"]
    assert after.items() <= digests(before).items()
    assert len(after) == len(digests(before)) - 1


def test_another_sweep_foreign_files_and_unknown_places_are_refused(bucket: str) -> None:
    address = bucket.format("other")
    sweep = sm.sweep(scenario(1.0), {"sender": ["reno"]})
    sweep.to_parquet(address)
    with pytest.raises(sm.InputError, match="s3://bucket/other: holds a sweep with another scenario file"):
        sm.sweep(scenario(1.0), {"sender": ["cubic", "bic"]}).to_parquet(address)
    other = sm.sweep(scenario(1.0), {"sender": ["cubic", "bic"]}).to_parquet(address, restart=True)
    assert other.to_polars()["sender"].to_list() == ["cubic", "bic"]
    files, _ = fs.FileSystem.from_uri(address)
    with files.open_output_stream("bucket/letters/dear.txt") as file:
        file.write(b"kept")
    with pytest.raises(sm.InputError, match="s3://bucket/letters: holds files but no sweep"):
        sweep.to_parquet(bucket.format("letters"), restart=True)
    with pytest.raises(sm.InputError, match='folder: "ftp://host/x" is in no known store; accepted: .* file://, s3://'):
        sweep.to_parquet("ftp://host/x")
    with pytest.raises(sm.FileError, match="s3://none/x"):
        sweep.to_parquet(bucket.format("x").replace("@bucket", "@none").replace("&allow_bucket_creation=true", ""))


def test_a_file_address_is_a_path(tmp_path: Path) -> None:
    parts = sm.sweep(scenario(1.0), {"sender": ["reno"]}).to_parquet(f"file://{tmp_path}/my%20sweep")
    assert parts.files() == [f"{tmp_path}/my sweep/part-000000/runs.parquet"]


def test_an_exception_in_an_algorithm_ends_a_sweep_into_a_store(bucket: str) -> None:
    class Broken(sm.CongestionControl):
        def on_ack(self, ack: sm.Ack, limits: sm.Limits) -> None:
            raise LookupError("broken on the way to the store")

    with pytest.raises(LookupError, match="broken on the way"):
        sm.sweep(scenario(1.0), {"sender": ["reno", Broken]}, seeds=20).to_parquet(bucket.format("broken"))


def test_workers_of_ray_write_to_the_store_themselves(tmp_path: Path, bucket: str, cluster: str) -> None:
    address = bucket.format("ray")
    sm.sweep(scenario(1.0), AXES).to_parquet(tmp_path / "folder")
    sm.sweep(scenario(1.0), AXES, engine="ray").to_parquet(address)
    assert digests(download(address, tmp_path / "store")) == digests(tmp_path / "folder")
