"""Certificates of an authority made for one test."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certificates:
    """Paths of an authority's certificate, and of a certificate and key that it signed."""

    authority: str
    certificate: str
    key: str


def certificates(folder: Path, *addresses: str) -> Certificates:
    """Make a new authority and a certificate for servers and clients at these addresses."""
    folder.mkdir(exist_ok=True)
    root_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    root_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"authority {folder.name}")])
    root = _builder(root_name, root_name, root_key.public_key()).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    usage = x509.KeyUsage(*[False] * 5, True, True, False, False)  # signs certificates and lists
    root = root.add_extension(usage, critical=True)
    own_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    names = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    leaf = _builder(own_name, root_name, key.public_key()).add_extension(
        x509.SubjectAlternativeName(names), critical=False
    )
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key())
    leaf = leaf.add_extension(issuer, critical=False)
    subject = x509.SubjectKeyIdentifier.from_public_key(root_key.public_key())
    root = root.add_extension(subject, critical=False)
    made = Certificates(*(str(folder / name) for name in ("ca.pem", "cert.pem", "key.pem")))
    pem = serialization.Encoding.PEM
    Path(made.authority).write_bytes(root.sign(root_key, hashes.SHA256()).public_bytes(pem))
    Path(made.certificate).write_bytes(leaf.sign(root_key, hashes.SHA256()).public_bytes(pem))
    plain = serialization.NoEncryption()
    Path(made.key).write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    return made


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )
