"""Secret file of a notification channel: one address or key of limited length, in a regular file."""

import os
from pathlib import Path

import pytest

from cliffwatch.base.errors import Code, Problem
from cliffwatch.stack.channels import Channel, ChannelKind, secret_of

MAIL = "smtp://user:word@mail.test:587/?from=a@mail.test&to=b@mail.test"


def secret(path: Path, kind: ChannelKind = ChannelKind.WEBHOOK) -> str:
    return secret_of(Channel(name="one", kind=kind, url_file=path, occasions=()))


def refusal(path: Path, kind: ChannelKind = ChannelKind.WEBHOOK) -> str:
    with pytest.raises(Problem) as refused:
        secret(path, kind)
    assert refused.value.code is Code.BAD_REQUEST
    return refused.value.detail


def test_a_fifo_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert refusal(tmp_path / "fifo") == f"--url-file: {tmp_path / 'fifo'} cannot be read: it is no file; remove it"


def test_an_address_of_a_megabyte_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_text("https://hooks.test/" + "a" * (1 << 20))
    assert refusal(path) == f"--url-file: {path} is longer than 4096 bytes"
    path.write_text("https://hooks.test/" + "a" * 4000 + "\n")
    assert secret(path) == "https://hooks.test/" + "a" * 4000


@pytest.mark.parametrize("control", ["%0D%0A", "%0d", "%0A", "%00", "%1B"])
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (ChannelKind.EMAIL, MAIL + "{}Bcc:c@mail.test"),
        (ChannelKind.EMAIL, MAIL.replace("from=a", "from=a{}")),
        (ChannelKind.EMAIL, MAIL.replace("user", "us{}er")),
        (ChannelKind.WEBHOOK, "https://hooks.test/{}X-More: 1".replace(" ", "")),
        (ChannelKind.SLACK, "https://us{}er@hooks.test/"),
    ],
)
def test_control_characters_are_refused_in_any_part(tmp_path: Path, kind: ChannelKind, text: str, control: str) -> None:
    path = tmp_path / "address"
    path.write_text(text.format(control))
    assert "holds a control character" in refusal(path, kind)
    path.write_text(text.format("%20"))
    assert secret(path, kind) == text.format("%20")


@pytest.mark.parametrize("text", ["https://hooks.test/\r\nX: 1", "https://hooks.test/\rx", "https://hooks.test/\x85"])
def test_an_address_of_several_lines_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "address"
    path.write_bytes(text.encode())
    assert "one word in ASCII" in refusal(path)
    path.write_bytes(b"https://hooks.test/\r\n")
    assert secret(path) == "https://hooks.test/"
