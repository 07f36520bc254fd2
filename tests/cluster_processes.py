"""A Dask scheduler and workers, each a process of its own, on this machine."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from certificates import Certificates


class Cluster:
    """A scheduler, and as many workers as are asked for.

    Parameters
    ----------
    folder : Path
        Where the processes run.
    identity : Certificates, optional
        Every connection is then encrypted, and both of its ends show their certificate.
    host : str
        Address of the scheduler.
    within : sequence of str
        Command prefix of the scheduler, such as one that enters a network namespace.
    """

    def __init__(
        self,
        folder: Path,
        identity: Certificates | None = None,
        *,
        host: str = "127.0.0.1",
        within: Sequence[str] = (),
    ) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self._protocol = "tcp" if identity is None else "tls"
        self._security: tuple[str, ...] = ()
        if identity is not None:
            self._security = ("--tls-ca-file", identity.authority)
            self._security += ("--tls-cert", identity.certificate, "--tls-key", identity.key)
        options = ("--port", "0", "--no-show", "--protocol", self._protocol)
        self.scheduler = self._start("scheduler", "--host", host, *options, within=within)
        pattern = rf"({self._protocol}://{re.escape(host)}:\d+)"
        self.address = self._said(self.scheduler, pattern.encode()).decode()

    def _start(self, command: str, *options: str, within: Sequence[str]) -> subprocess.Popen[bytes]:
        program = [*within, sys.executable, "-m", f"distributed.cli.dask_{command}"]
        process = subprocess.Popen(
            [*program, "--no-dashboard", *self._security, *options],
            cwd=self._folder,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        self._processes.append(process)
        return process

    @staticmethod
    def _said(process: subprocess.Popen[bytes], pattern: bytes) -> bytes:
        assert process.stderr is not None
        for line in process.stderr:
            if match := re.search(pattern, line):
                return match[0]
        raise AssertionError(f"a process of the cluster ended: {process.args}")

    def worker(
        self, address: str = "127.0.0.1", *, within: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        """One more worker, which the scheduler knows when this returns; a URL sets its protocol."""
        place = ("--listen-address" if "://" in address else "--host", address)
        options = (self.address, *place, "--nthreads", "1", "--no-nanny")
        process = self._start("worker", *options, within=within)
        self._said(process, rb"Registered to")
        return process

    def close(self) -> None:
        """End every process."""
        for process in self._processes:
            process.kill()
            process.communicate()
