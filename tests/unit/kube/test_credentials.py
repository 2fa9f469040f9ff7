"""Credentials from a pod and from kubeconfig files."""

import base64
import dataclasses
from pathlib import Path

import pytest
import yaml

from gpushare.errors import UsageError
from gpushare.kube import credentials
from gpushare.kube.credentials import Credentials, TokenReader
from gpushare.serving.certificates import Authority

PEM = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n"


def kubeconfig(cluster: dict, user: dict | None = None, **top: object) -> dict:
    context = {"cluster": "c", "namespace": "gpu-operator"} | ({"user": "u"} if user is not None else {})
    return {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": context}],
        "current-context": "x",
        **top,
    }


@pytest.mark.parametrize(
    ("cluster", "user", "expected"),
    [
        pytest.param({"server": "https://h:1/"}, None, Credentials(server="https://h:1"), id="nobody"),
        pytest.param(
            {"server": "https://h:1", "certificate-authority-data": base64.b64encode(PEM.encode()).decode()},
            {"token": "t"},
            Credentials(server="https://h:1", ca=PEM, token="t"),
            id="inline CA and token",
        ),
        pytest.param(
            {"server": "https://h:1", "insecure-skip-tls-verify": True, "tls-server-name": "other"},
            {"client-certificate-data": base64.b64encode(b"cert").decode(), "client-key": "key.pem"},
            Credentials(
                server="https://h:1", insecure=True, server_name="other", client_certificate="cert", client_key="key"
            ),
            id="client certificate, inline and beside the file",
        ),
    ],
)
def test_kubeconfig(tmp_path: Path, cluster: dict, user: dict | None, expected: Credentials) -> None:
    """What kubectl would take from the file is what we take."""
    (tmp_path / "key.pem").write_text("key")
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(kubeconfig(cluster, user)))

    read = credentials.from_kubeconfig(path)

    assert read.namespace == "gpu-operator"
    assert {name: getattr(read, name) for name in ("server", "ca", "token", "server_name", "insecure")} == {
        name: getattr(expected, name) for name in ("server", "ca", "token", "server_name", "insecure")
    }
    assert (expected.client_certificate, expected.client_key) == (read.client_certificate, read.client_key)


def test_kubeconfig_token_file(tmp_path: Path) -> None:
    """A token file lies beside the kubeconfig."""
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(kubeconfig({"server": "https://h:1"}, {"tokenFile": "token"})))

    assert credentials.from_kubeconfig(path).token_file == tmp_path / "token"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("a: [", "no YAML", id="broken"),
        pytest.param("[]", "no kubeconfig", id="a list"),
        pytest.param("", "no kubeconfig", id="empty"),
        pytest.param("{}", "no current-context", id="no context chosen"),
        pytest.param(yaml.safe_dump(kubeconfig({}, {})), "cluster 'c' has no server", id="no server"),
        pytest.param("current-context: y", "contexts has no 'y'", id="unknown context"),
        pytest.param(
            yaml.safe_dump(kubeconfig({"server": "https://h:1"}, {"exec": {"command": "aws"}})),
            "'exec', which is not supported",
            id="plugin",
        ),
        pytest.param(
            yaml.safe_dump(kubeconfig({"server": "https://h:1", "certificate-authority-data": "%"})),
            "certificate-authority-data is no base64",
            id="no base64",
        ),
        pytest.param(
            yaml.safe_dump(kubeconfig({"server": "https://h:1", "certificate-authority": "nowhere.crt"})),
            "nowhere.crt: No such file",
            id="no CA file",
        ),
    ],
)
def test_kubeconfig_refused(tmp_path: Path, content: str, message: str) -> None:
    """A file that cannot be used is named, with what is wrong in it."""
    path = tmp_path / "config"
    path.write_text(content)

    with pytest.raises(UsageError, match=message):
        credentials.from_kubeconfig(path)


def test_in_cluster(tmp_path: Path) -> None:
    """The kubelet's variables and files, below the given root."""
    folder = tmp_path / "var/run/secrets/kubernetes.io/serviceaccount"
    folder.mkdir(parents=True)
    (folder / "ca.crt").write_text(PEM)
    (folder / "token").write_text("t")
    (folder / "namespace").write_text("gpu-operator\n")

    read = credentials.in_cluster(tmp_path, {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"})

    assert read == Credentials(
        server="https://[fd00::1]:443", ca=PEM, token_file=folder / "token", namespace="gpu-operator"
    )


def test_no_pod(tmp_path: Path) -> None:
    """Outside of a pod the message names the way out."""
    with pytest.raises(UsageError, match="--kubeconfig"):
        credentials.in_cluster(tmp_path, {})


def test_token_rotation(tmp_path: Path) -> None:
    """A replaced token is taken at once when the server has refused the old one, and a missing file keeps the last."""
    file = tmp_path / "token"
    file.write_text("one\n")
    tokens = TokenReader(Credentials(server="https://h", token_file=file))
    assert tokens.read() == "one"

    file.write_text("two")
    assert tokens.read() == "one"
    assert tokens.read(anew=True) == "two"

    file.unlink()
    assert tokens.read(anew=True) == "two"


def test_secrets_are_not_shown() -> None:
    """A token never gets into a log through a repr."""
    assert "secret" not in repr(Credentials(server="https://h", token="secret", client_key="secret"))


def test_bad_certificates() -> None:
    """A CA that is no PEM is the user's to mend."""
    with pytest.raises(UsageError, match="certificates for https://h"):
        credentials.tls_context(Credentials(server="https://h", ca="nonsense"))


def test_client_certificate() -> None:
    """A client certificate is taken from memory; one that does not fit its key is named."""
    authority = Authority.create("test")
    pair = authority.issue("someone", ("localhost",))
    other_key = authority.issue("another", ("localhost",)).key
    mine = Credentials(server="https://h", ca=authority.pem, client_certificate=pair.certificate, client_key=pair.key)

    assert credentials.tls_context(mine) is not None
    with pytest.raises(UsageError, match="certificates for https://h"):
        credentials.tls_context(dataclasses.replace(mine, client_key=other_key))


def test_no_verification() -> None:
    """What a kubeconfig says of trust is done: no check where it wants none, no TLS where there is none."""
    context = credentials.tls_context(Credentials(server="https://h", insecure=True))

    assert context is not None
    assert not context.check_hostname
    assert credentials.tls_context(Credentials(server="http://h")) is None
