"""A self-signed certificate for 127.0.0.1, made when asked for and gone with its directory.

For loopback servers whose clients insist on TLS. Nothing here is a secret worth keeping.
"""

import ipaddress
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

__all__ = ["Certificate", "loopback_certificate"]


@dataclass(frozen=True)
class Certificate:
    """The certificate and its key, as files."""

    path: Path  # what a client trusts: `SSL_CERT_FILE` of another process may name it
    key_path: Path

    def server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path, self.key_path)
        return context

    def client_context(self) -> ssl.SSLContext:
        """Return a context that trusts this certificate and no other."""
        return ssl.create_default_context(cafile=str(self.path))


@contextmanager
def loopback_certificate() -> Iterator[Certificate]:
    """Make a certificate that is good for an hour; its files go when the block is left."""
    key = ec.generate_private_key(ec.SECP256R1())
    with TemporaryDirectory() as directory:
        certificate = Certificate(Path(directory, "cert.pem"), Path(directory, "key.pem"))
        certificate.path.write_bytes(_signed(key).public_bytes(serialization.Encoding.PEM))
        certificate.key_path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        yield certificate


def _signed(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    address = x509.IPAddress(ipaddress.IPv4Address("127.0.0.1"))
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # A little early: clocks of two processes may read the second differently.
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        # Python 3.13 verifies strictly: a certificate that is trusted as its own issuer has to
        # say that it is one.
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_KEY_USAGE, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


_KEY_USAGE = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)
