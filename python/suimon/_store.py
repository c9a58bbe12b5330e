"""Object stores as places for sweeps.

A store has no renames and no locks. A part is made in a folder of this machine and uploaded table by table, `runs`
last, so that a part whose `runs` are there is whole; whoever makes a part twice uploads the same bytes.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import IO, cast
from urllib.parse import unquote, urlsplit

from suimon import _suimon
from suimon.errors import FileError, InputError

_SCHEMES = ("s3", "gs", "abfs", "hdfs")
_MANIFEST = "sweep.json"
#: The last table of a part to be uploaded; every part has it.
_LAST = "runs.parquet"
#: Parts on their way at once, since a store takes its time for each file.
_UPLOADS = 8
#: Parts that are asked for one by one; of more, a list tells in fewer requests.
_ASKED = 100


def place(folder: str) -> str | Store:
    """What ``folder`` names: an absolute path, or a store.

    Raises:
        InputError: It is an address, and of no store.
    """
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", folder):
        return str(Path(folder).absolute())
    scheme = urlsplit(folder).scheme
    if scheme == "file":
        return unquote(urlsplit(folder).path)
    if scheme not in _SCHEMES:
        accepted = ", ".join(f"{each}://" for each in ("file", *_SCHEMES))
        raise InputError(f'folder: "{folder}" is in no known store; accepted: a path, or an address with {accepted}')
    return Store(folder)


class Store:
    """A folder of an object store, by its address."""

    def __init__(self, uri: str) -> None:
        try:
            from pyarrow import ArrowInvalid, fs
        except ImportError:
            accepted = "pip install 'suimon[store]', or a path"
            raise InputError(f'folder: "{uri}" takes pyarrow; accepted: {accepted}') from None
        #: As it was given.
        self.uri = uri
        try:
            self._files, root = fs.FileSystem.from_uri(uri)
        except (ArrowInvalid, NotImplementedError) as error:
            raise InputError(f'folder: "{uri}": {error}; accepted: an address as pyarrow takes it') from None
        self._root = root.rstrip("/")
        #: Its address without credentials and options.
        self.address = f"{urlsplit(uri).scheme}://{self._root}"

    def open(self, sweep: _suimon.Sweep, restart: bool) -> None:
        """Makes it the place of ``sweep``: new, or where the same has stopped.

        Raises:
            InputError: Another sweep is there, which ``restart`` does not discard, or foreign files are.
        """
        with self._failing():
            names = self._names()
            if _MANIFEST not in names and names:
                raise InputError(f"{self.address}: holds files but no sweep; accepted: another folder, an empty one")
            if _MANIFEST in names and not restart:
                with self._files.open_input_stream(f"{self._root}/{_MANIFEST}") as file:
                    difference = sweep.difference(file.read().decode())
                if difference is None:
                    return
                accepted = "the same sweep to go on with, another folder, restart=True to discard what is there"
                raise InputError(f"{self.address}: holds a sweep with another {difference}; accepted: {accepted}")
            for name in names:
                if name.startswith("part-"):
                    self._files.delete_dir(f"{self._root}/{name}")
            with self._files.open_output_stream(f"{self._root}/{_MANIFEST}") as file:
                file.write(sweep.manifest.encode())

    def missing(self, parts: Iterable[int]) -> list[int]:
        """Those of ``parts`` that are not there."""
        files = {part: f"{self._root}/{_part(part)}/{_LAST}" for part in parts}
        if len(files) > _ASKED:
            found = set(self.files("runs"))
        else:
            with self._failing():
                found = {info.path for info in self._files.get_file_info(list(files.values())) if info.is_file}
        return [part for part, file in files.items() if file not in found]

    def make(self, sweep: _suimon.Sweep, parts: list[int], writer: str, stop: Event) -> int:
        """Makes those of ``parts`` that are not there, until ``stop`` is set; gives how many."""
        made = 0
        with TemporaryDirectory(prefix="suimon-sweep-") as local, ThreadPoolExecutor(_UPLOADS) as pool:
            under_way = []
            for part in self.missing(parts):
                if stop.is_set():
                    break
                made += sweep.make_parts(local, [part], writer)
                under_way.append(pool.submit(self._upload, Path(local) / _part(part)))
                # Or the disk would fill where uploads are slower than runs.
                if len(under_way) > 2 * _UPLOADS:
                    under_way.pop(0).result()
            for upload in under_way:
                upload.result()
        return made

    def files(self, table: str) -> list[str]:
        """The files of ``table``, in the order of the runs."""
        from pyarrow import fs

        with self._failing():
            found = self._files.get_file_info(fs.FileSelector(self._root, recursive=True))
        return sorted(info.path for info in found if info.is_file and info.base_name == f"{table}.parquet")

    def read(self, file: str) -> IO[bytes]:
        """One of its `files`."""
        with self._failing():
            return cast(IO[bytes], self._files.open_input_file(file))

    def _names(self) -> list[str]:
        from pyarrow import fs

        found = self._files.get_file_info(fs.FileSelector(self._root, allow_not_found=True))
        return [info.base_name for info in found]

    def _upload(self, part: Path) -> None:
        from pyarrow import fs

        with self._failing():
            for file in sorted(part.iterdir(), key=lambda file: file.name == _LAST):
                there = f"{self._root}/{part.name}/{file.name}"
                fs.copy_files(str(file), there, fs.LocalFileSystem(), self._files, use_threads=False)
        shutil.rmtree(part)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """What the store refuses as this package's exception."""
        try:
            yield
        except FileError:
            raise
        except OSError as error:
            raise FileError(f"{self.address}: {error}") from error


def _part(number: int) -> str:
    return f"part-{number:06}"
