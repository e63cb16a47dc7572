"""One threshold has one name and one home."""

import ast
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from cliffwatch import analysis

HOME = Path(analysis.__file__).parent
#: Where thresholds stand: those of detection, and those of causes.
HOMES = (HOME / "thresholds.py", HOME / "causes" / "thresholds.py")
#: Modules that decide what is a finding, since when, and of which cause.
DECIDING = [
    *(
        path
        for place in ("online", "offline", "causes")
        for path in sorted((HOME / place).glob("*.py"))
        if path not in HOMES
    ),
    *(
        HOME / name
        for name in ("cliff.py", "layers.py", "run_analysis.py", "sizes.py", "chance.py", "isolated.py", "returning.py")
    ),
]
#: Numbers that say how something is measured and decide nothing: what may stay with the code that measures.
MEASURING = {
    "online/channel.py": {
        "_RING",
        "_LOWEST_HOURS",
        "_LOCAL_BLOCKS",
        "_RECENT",
        "_HALVES_KEPT",
        "_WINDOWS_KEPT",
        "_PHASE_WINDOWS",
        "_SIGMA_UNKNOWN",
        "_REFERENCE_LEAST",
    },
    "online/detector.py": {"_ENDS_KEPT", "_DRIFT_STRIDE"},
    "online/drift.py": {
        "SPANS",
        "_INFERRED",
        "_INFERRED_FROM",
        "_HALVES_A_DAY",
        "_HOURS_OF_DAY",
        "_HOURS_KNOWN",
        "_LOWEST",
    },
    "online/excursion.py": {"_MEDIAN_WINDOWS", "_LAST_WINDOWS", "_PAST_KEPT"},
    "online/rare_spikes.py": {
        "_QUANTILES",
        "_LEVEL_WINDOWS",
        "_LEVEL_LEAST",
        "_LOAD_WINDOWS",
        "_BIN",
        "_BINS",
        "_KEPT",
        "_BAND",
    },
    "online/time_above.py": {
        "_MEDIAN_WINDOWS",
        "_REFERENCE_MOST",
        "_REFERENCE_HIGHEST",
        "_REFERENCE_HOURS",
        "_WINDOW_SECONDS",
        "_HOUR_LEAST",
        "_REFERENCE_LEAST",
        "_LULL_LEAST",
        "_ABOVE_LEAST",
        "_LOAD_WINDOWS",
        "_LOAD_LEAST",
        "_KEPT",
    },
    "online/ratios.py": {"RATIO_SPANS"},
    "online/recurrence.py": {"_INTERVALS_MOST", "_TURNS_MOST"},
    "online/rising.py": {"_HOURS", "_SKEWS", "_LEAST", "_ERROR_LEAST"},
    "online/shape.py": {"_BLOCKS", "_LEAST", "_RAMP_STRIDE", "_OUTLIER", "_EDGE_LEAST"},
    "online/spikes.py": {"_KEPT", "_BINS", "_BIN"},
    "online/steps.py": {
        "_STRIDE",
        "_PAIRED_SPAN",
        "_PAIRS_KEPT",
        "_PAIRS_LEAST",
        "_PRESENT_BLOCKS",
        "_BEFORE_BLOCKS",
        "_FADES",
        "_OWN_LEAST",
        "_SHORTER_LEAST",
        "_INFERRED_PART",
    },
    "offline/changes.py": {
        "_GRADUAL_BLOCKS",
        "_RETURNS_PART",
        "_RAMP_PART",
        "_REACH_PART",
        "_SMOOTH_BLOCKS",
        "_SHAPE_POINTS",
        "_SIDES",
    },
    "offline/drift.py": {"_DRIFT_BLOCKS", "_MEDIAN_LEAST", "_HALF_HOUR"},
    "offline/onset.py": {
        "REACH",
        "_CLIENT_WEIGHT",
        "_DEVICE_WEIGHT",
        "_BEYOND",
        "_MEMORY_WINDOWS",
        "_LEFT_OPEN",
        "_BEYOND_SIGMAS",
        "_MARGIN_WINDOWS",
        "_BEFORE_LEAST",
        "_AFTER_LEAST",
        "_SIGMA_LEAST",
        "_USUAL_WINDOWS",
        "_HISTORY_LEAST",
        "_BACK_WINDOWS",
        "_CLEAR_SIGMAS",
        "_ALIKE",
    },
    "offline/view.py": {"_SKIPPED_PART", "_BASELINE_PART"},
    "offline/partition.py": {"_PLACES_LIMIT"},
    "offline/ramps.py": {"_MORE_LEAST", "_STARTS", "_EDGE_LEAST"},
    "offline/recurring.py": {"_RECENT_LEVEL_BLOCKS", "_NEAR_BLOCKS"},
    "offline/segments.py": {
        "_SEGMENT_MINIMUM",
        "BEFORE_BLOCKS",
        "AFTER_BLOCKS",
        "_PLACES",
        "_MEANS_BLOCKS",
        "_MEANS_LEAST",
        "_SIGMA_UNKNOWN",
        "_SIGMA_LEAST",
        "_USUAL_BLOCKS",
        "_USUAL_SIGMAS",
        "_SEGMENTS_LEAST",
        "_OVERLAP",
        "_AFTER_LEAST",
        "_LOWEST",
    },
    "causes/diagnosis.py": {"_OTHER_CAUSES_SCORE"},
    "causes/evidence.py": {"STRONG", "FAIR", "WEAK"},
    "chance.py": {"_DAY_SECONDS", "_LAST"},
    "isolated.py": {"_LEVEL_WINDOWS", "_LOAD_WINDOWS", "_LEAST", "_NAMED"},
    "sizes.py": {"LEVEL_WINDOWS", "RECENT_WINDOWS", "_BAND", "_PEAKS"},
}
#: Halves, doubles, signs, the first and the last, hundredths that are printed.
ARITHMETIC = {-1, 0, 1, 2, 0.5, 100}


def constants(path: Path) -> Iterator[str]:
    """Names to which a module assigns numbers when it is imported."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None or not is_of_numbers(node.value):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))


def is_of_numbers(value: ast.AST) -> bool:
    return any(isinstance(node, ast.Constant) and type(node.value) in (int, float) for node in ast.walk(value))


def test_deciding_modules_define_no_constants_besides_those_of_measuring() -> None:
    found = {str(path.relative_to(HOME)): names for path in DECIDING if (names := set(constants(path)))}
    assert found == MEASURING


def literals(path: Path) -> Iterator[str]:
    """Numbers in a module's functions that no arithmetic needs: what is compared, or stated, has a name."""
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(function, ast.FunctionDef | ast.Lambda):
            for node in ast.walk(function):
                if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value not in ARITHMETIC:
                    where = getattr(function, "name", "lambda")
                    yield f"{path.relative_to(HOME)}: {where}: {node.value!r}"


def test_no_number_that_decides_stands_in_a_function() -> None:
    rounded = {"causes/diagnosis.py: _with_confidence: 3", "layers.py: compare: 3"}
    assert set(chain.from_iterable(map(literals, DECIDING))) - rounded == set()


def test_every_threshold_is_used_and_has_one_name() -> None:
    own = list(chain.from_iterable(map(constants, HOMES)))
    assert {"CLIFF_RATIO", "STEP_RATIOS", "PATIENCE", "EARLY_WINDOWS", "WARM_UP"} <= set(own)
    assert len(own) == len(set(own))
    assert set(own).isdisjoint(chain.from_iterable(MEASURING.values()))
    elsewhere = "".join(path.read_text(encoding="utf-8") for path in HOME.parent.rglob("*.py") if path not in HOMES)
    assert [name for name in own if name not in elsewhere] == []


def test_the_ratio_of_a_cliff_is_compared_in_one_place() -> None:
    naming = [path.name for path in sorted(HOME.rglob("*.py")) if "CLIFF_RATIO" in path.read_text(encoding="utf-8")]
    assert naming == ["cliff.py", "thresholds.py"]
