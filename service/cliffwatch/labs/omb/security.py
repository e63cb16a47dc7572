"""Import the security keys of a driver file: client credentials, and the certificates that brokers are checked by.

Secrets are not imported: every user with read access can see the workload.
"""

import re
from typing import Any

from cliffwatch.labs.omb.files import Keys, Remarks, wrong

#: Debian's file of public certificate authorities; Java trusts public authorities, too, where no store is named.
SYSTEM_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
PASSWORD_FILE = "/var/lib/cliffwatch/secrets/broker-password"
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
#: The username of a JAAS configuration, in double, single or no quotes.
_USERNAME = re.compile(r"""\busername\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"']+))""")


def import_security(common: Keys, remarks: Remarks) -> dict[str, Any]:
    """The workload's `security` section; empty for brokers without TLS and SASL. Raises Problem(bad_request)."""
    protocol = str(common.take("security.protocol", "PLAINTEXT")).upper()
    mechanism, jaas = str(common.take("sasl.mechanism", "PLAIN")), str(common.take("sasl.jaas.config", ""))
    security: dict[str, Any] = {}
    if "SASL" in protocol:
        security["sasl"] = _sasl(mechanism, jaas, remarks)
    if "SSL" in protocol:
        security["tls"] = _tls(common, remarks)
    for key in ("type", "location", "password"):
        for store in ("truststore", "keystore"):
            common.take(f"ssl.{store}.{key}")
    return security


def _sasl(mechanism: str, jaas: str, remarks: Remarks) -> dict[str, Any]:
    if mechanism not in _MECHANISMS:
        words = (
            f"{mechanism} is not supported; a user of the brokers' with one of {', '.join(_MECHANISMS)} can be taken"
        )
        raise wrong("driver.commonConfig.sasl.mechanism", words)
    found = _USERNAME.search(jaas)
    username = next(filter(None, found.groups()), "") if found else ""
    if not username:
        raise wrong("driver.commonConfig.sasl.jaas.config", 'it has no username; write username="NAME" into it')
    words = (
        "the password is not taken over; put it into a file in `secrets` of the state directory, and name that as "
        "security.sasl.password_file"
    )
    remarks.note("commonConfig.sasl.jaas.config", words)
    return {"mechanism": mechanism, "username": username, "password_file": PASSWORD_FILE}


def _tls(common: Keys, remarks: Remarks) -> dict[str, Any]:
    """Convert TLS keys. Only PEM stores are taken, by path; a key store is both certificate and key file."""
    tls: dict[str, Any] = {"ca_file": _pem(common, "truststore", remarks) or SYSTEM_CERTIFICATES}
    own = _pem(common, "keystore", remarks)
    if own is not None:
        tls |= {"certificate_file": own, "key_file": own}
    if common.take("ssl.endpoint.identification.algorithm") == "":
        words = "the brokers' names are checked against their certificates all the same; see security.tls.server_name"
        remarks.warn("commonConfig.ssl.endpoint.identification.algorithm", words)
    return tls


def _pem(common: Keys, store: str, remarks: Remarks) -> str | None:
    """Path of a store in PEM; None if no store is named, or, with a warning, if it has another format such as JKS."""
    location, kind = common.take(f"ssl.{store}.location"), str(common.take(f"ssl.{store}.type", "JKS")).upper()
    if location is None:
        return None
    if kind == "PEM":
        return str(location)
    consequence = {
        "truststore": "brokers are believed that public authorities vouch for, and no others",
        "keystore": "the client has no certificate, and brokers that ask for one refuse it",
    }[store]
    words = f"a {kind} store is not read, so {consequence}; export it as PEM, and name that in security.tls"
    remarks.warn(f"commonConfig.ssl.{store}.location", words)
    return None
