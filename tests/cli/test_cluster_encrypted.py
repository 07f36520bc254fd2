"""A cluster over TLS: both ends show a certificate of one authority, or nothing is sent."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from certificates import Certificates, certificates
from cluster_processes import Cluster

RUN = ("--algo", "dp-gd", "--loss", "squared", "--eps", "2", "--delta", "1e-5", "--seed", "1")
RUN = (*RUN, "--force", "--index-base", "1", "--dataset", "rows")

# Names of network namespaces and addresses in them; the bridge between them has none.
HUB = f"dpfit-{os.getpid()}-hub"
PLACES = {"scheduler": "10.213.77.1", "one": "10.213.77.2", "two": "10.213.77.3"}


def dask_settings(identity: Certificates) -> dict[str, str]:
    """The environment of a client that has these certificates."""
    tls = "DASK_DISTRIBUTED__COMM__TLS__"
    return {
        **os.environ,
        f"{tls}CA_FILE": identity.authority,
        f"{tls}CLIENT__CERT": identity.certificate,
        f"{tls}CLIENT__KEY": identity.key,
    }


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates(tmp_path_factory.mktemp("own"), "127.0.0.1", *PLACES.values())


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates(tmp_path_factory.mktemp("other"), "127.0.0.1")


@pytest.fixture
def parts(dpfit: Any) -> list[str]:
    """Three files; what one process fits to them is in wanted.json."""
    names = [dpfit.svm(f"part-{number}.svm", seed=number) for number in range(3)]
    assert dpfit.here("fit", *names, *RUN, "-o", "wanted.json").status == 0
    return names


def check_fitted(dpfit: Any, ended: Any) -> None:
    assert ended.status == 0, ended.err
    folder = dpfit.folder
    assert (folder / "found.json").read_bytes() == (folder / "wanted.json").read_bytes()


def test_tls(
    dpfit: Any, parts: list[str], identity: Certificates, stranger: Certificates, tmp_path: Path
) -> None:
    """With certificates of the cluster's authority the model of one process; with those of another,
    with none, or in the open: one line, nothing charged or written. A worker that listens in the
    open, to which others would send sums, is refused as well."""
    cluster = Cluster(tmp_path, identity)
    try:
        cluster.worker()
        cluster.worker()
        where = ("--cluster", cluster.address, "-o", "found.json", "--ledger", "found.ledger")
        strange = dask_settings(stranger)
        mixed = {**strange, "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": identity.authority}
        for env in (strange, mixed, dict(os.environ)):
            ended = dpfit("fit", *parts, *RUN, *where, env=env)
            assert ended.status == 5, ended.err
            assert "Traceback" not in ended.err
            assert ended.err.splitlines()[-2:] == [
                f"dpfit: error: {cluster.address}: the cluster cannot be reached",
                "hint: is a Dask scheduler running there? it prints its address as it starts; "
                "Dask's own settings name the certificates",
            ]
        plain = cluster.address.replace("tls", "tcp")
        ended = dpfit("fit", *parts, *RUN, "--cluster", plain, env=dask_settings(identity))
        assert ended.status == 2
        assert "in the open" in ended.err
        assert not (dpfit.folder / "found.ledger").exists()
        assert not (dpfit.folder / "found.json").exists()
        check_fitted(dpfit, dpfit("fit", *parts, *RUN, *where, env=dask_settings(identity)))
        cluster.worker("tcp://127.0.0.1:0")
        ended = dpfit(
            "fit", *parts, *RUN, "--cluster", cluster.address, env=dask_settings(identity)
        )
        assert ended.status == 2, ended.err
        assert "a worker listens in the open" in ended.err
    finally:
        cluster.close()


@pytest.fixture
def networks() -> Iterator[dict[str, tuple[str, ...]]]:
    """Network namespaces joined by a bridge: for each the command prefix that enters it."""
    if shutil.which("ip") is None:
        pytest.skip("no ip command")
    entered = {name: ("ip", "netns", "exec", f"{HUB}-{name}") for name in PLACES}
    made: list[str] = []

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    try:
        try:
            ip("netns", "add", HUB)
            made.append(HUB)
            ip("-n", HUB, "link", "add", "bridge", "type", "bridge")
            ip("-n", HUB, "link", "set", "dev", "bridge", "up")
            for name, address in PLACES.items():
                space, port = f"{HUB}-{name}", f"to-{name}"
                ip("netns", "add", space)
                made.append(space)
                ends = ("eth0", "type", "veth", "peer", "name", port, "netns", HUB)
                ip("-n", space, "link", "add", *ends)
                ip("-n", HUB, "link", "set", "dev", port, "master", "bridge", "up")
                ip("-n", space, "address", "add", f"{address}/24", "dev", "eth0")
                for device in ("lo", "eth0"):
                    ip("-n", space, "link", "set", "dev", device, "up")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespaces here: {error.stderr!r}")
        yield entered
    finally:
        for space in reversed(made):
            ip("netns", "delete", space)


def test_networks_of_their_own(
    dpfit: Any,
    parts: list[str],
    identity: Certificates,
    networks: dict[str, tuple[str, ...]],
    tmp_path: Path,
) -> None:
    """Scheduler and workers each see a network of their own, joined over TLS; from outside the
    scheduler is not there."""
    cluster = Cluster(tmp_path, identity, host=PLACES["scheduler"], within=networks["scheduler"])
    try:
        for name in ("one", "two"):
            cluster.worker(PLACES[name], within=networks[name])
        where = ("--cluster", cluster.address, "-o", "found.json")
        env = dask_settings(identity)
        ended = dpfit("fit", *parts, *RUN, *where, prefix=networks["scheduler"], env=env)
        check_fitted(dpfit, ended)
        port = int(cluster.address.rpartition(":")[2])
        with socket.socket() as outside:
            outside.settimeout(1)
            assert outside.connect_ex((PLACES["scheduler"], port)) != 0
    finally:
        cluster.close()
