"""What a host shows the others of a start to prove that it is one of them: a key of its own, made for that start."""

import hashlib
import ssl
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

__all__ = ["Identity", "fingerprint_of"]

_FROM, _UNTIL = datetime(2000, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
"""A key lives as long as its start, and hosts' clocks may be wrong by years."""


class Identity:
    """A key that never leaves this process, and the certificate that goes with it."""

    def __init__(self, name: str) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(_FROM)
            .not_valid_after(_UNTIL)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM).decode()
        """In PEM, for the others."""
        self._key = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def context(self, side: int, trusted: Iterable[str]) -> ssl.SSLContext:
        """TLS 1.3 for one side, `ssl.PROTOCOL_TLS_SERVER` or `_CLIENT`, with whoever has one of these certificates."""
        context = ssl.SSLContext(side)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_verify_locations(cadata="".join(trusted))
        if side == ssl.PROTOCOL_TLS_SERVER:
            # Tickets would be written by the side that only reads.
            context.num_tickets = 0
        # The library reads keys from files alone; this folder is open to its user only.
        with tempfile.TemporaryDirectory(prefix="tandem-key-") as folder:
            file = Path(folder) / "key.pem"
            file.write_bytes(self._key + self.certificate.encode())
            context.load_cert_chain(file)
        return context


def fingerprint_of(certificate: str | bytes | None) -> str:
    """SHA-256 of a certificate, given in PEM or DER."""
    der = ssl.PEM_cert_to_DER_cert(certificate) if isinstance(certificate, str) else certificate or b""
    return hashlib.sha256(der).hexdigest()
