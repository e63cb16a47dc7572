"""Tables of the documents."""

from testkit.checkout import ROOT


def table(page: str, *headings: str) -> dict[str, list[str]]:
    """The first table of a page with these first headings: by first cell, the other cells."""
    return tables(page, *headings)[0]


def tables(page: str, *headings: str) -> list[dict[str, list[str]]]:
    found: list[dict[str, list[str]]] = []
    rows: dict[str, list[str]] | None = None
    for line in (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            rows = None
        elif rows is not None and not line.startswith("|---"):
            rows[cells[0]] = cells[1:]
        elif tuple(cells[: len(headings)]) == headings:
            rows = {}
            found.append(rows)
    assert found, f"{page} has no table that begins with {headings}"
    return found
