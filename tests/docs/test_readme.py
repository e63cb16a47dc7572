"""The README is short: what it is, one picture, how to try it, and where to go on."""

import re

from testkit.checkout import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_is_short_and_has_one_picture() -> None:
    assert len(README.splitlines()) <= 120
    assert len(re.findall(r"!\[|<img\b", README)) == 1


def test_the_readme_has_five_figures() -> None:
    figures = README.split("\n## Figures\n")[1].split("\n## ")[0]
    assert len([line for line in figures.splitlines() if line.startswith("|")]) == 2 + 5
