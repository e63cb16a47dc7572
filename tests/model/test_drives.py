"""Drives that are chosen by the labels of their series."""

import pytest
from pydantic import TypeAdapter, ValidationError

from cliffwatch.model.drives import Drives, PrometheusDrives

DRIVES: TypeAdapter[PrometheusDrives] = TypeAdapter(Drives)


@pytest.mark.parametrize(
    "selector",
    [
        'device="nvme0n1"',
        'instance=~"broker-.*",device=~"nvme.*"',
        ' instance != "a,b" , device!~"loop.*" ',
        r'device="a\"b\\"',
        'job="node", device="caf\N{LATIN SMALL LETTER E WITH ACUTE}"',
    ],
)
def test_a_selector_is_label_matchers_and_one_text(selector: str) -> None:
    drives = DRIVES.validate_python(f"prometheus:{selector}")
    assert drives == PrometheusDrives(selector=selector)
    assert drives.selector == selector.strip()
    assert DRIVES.validate_python(str(drives)) == drives
    assert DRIVES.validate_python(drives.model_dump()) == drives


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prometheus:", "ends where a matcher is missing"),
        ('prometheus:device="a",', "ends where a matcher is missing"),
        ("prometheus:device=nvme0n1", "from 'device=nvme0n1' on"),
        ('prometheus:device="a"} or up{job="b"', "from '} or up{job"),
        ('prometheus:{device="a"}', "label matchers"),
        ('prometheus:device=="a"', "label matchers"),
        ('prometheus:device="a\nb"', "label matchers"),
        ('prometheus:device="' + "x" * 1000 + '"', "at most 1000"),
        ("kernel:sda", "no source of drives"),
        ("nvme0n1", "write prometheus:SELECTOR"),
    ],
)
def test_an_invalid_drive_selector_is_refused_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        DRIVES.validate_python(text)
    assert said in str(refused.value)
