"""One threshold has one name and one home."""

from collections import Counter
from importlib import import_module
from pathlib import Path

from cliffwatch import analysis
from cliffwatch.analysis import span_lengths, thresholds

HOME = Path(analysis.__file__).parent


def constants(module: str) -> set[str]:
    """Public constants that a module defines itself."""
    imported = import_module(module)
    assert imported.__file__ is not None
    lines = Path(imported.__file__).read_text(encoding="utf-8").splitlines()
    targets = [line.partition(" =")[0].partition(":")[0] for line in lines if line[:1].isupper() and " = " in line]
    return {name for target in targets for name in target.split(", ") if name.isupper()}


def test_the_ratio_of_a_cliff_is_compared_in_one_place() -> None:
    naming = [path.name for path in sorted(HOME.rglob("*.py")) if "CLIFF_RATIO" in path.read_text(encoding="utf-8")]
    assert naming == ["cliff.py", "thresholds.py"]


def test_no_two_detectors_give_one_name_to_different_thresholds() -> None:
    modules = [
        f"cliffwatch.analysis.{path.parent.name}.{path.stem}"
        for place in ("online", "offline")
        for path in sorted((HOME / place).glob("*.py"))
        if path.stem != "__init__"
    ]
    owners = Counter(name for each in modules for name in constants(each))
    owners.update(name for home in (thresholds, span_lengths) for name in constants(home.__name__))
    assert {"CLIFF_RATIO", "STEP_RATIOS", "PATIENCE", "EARLY_WINDOWS"} <= set(owners)
    assert [name for name, count in owners.items() if count > 1] == []
