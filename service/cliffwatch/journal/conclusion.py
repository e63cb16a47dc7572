"""Conclusion of a run's report, as the event that finishes the run records it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cliffwatch.model.run_state import Verdict, VerdictName


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Verdict on a run, the report's `findings`, and raised findings that it did not confirm (`unconfirmed`).

    `analysed` is False where the measurements could not be analysed: the verdict can be corrected later.
    """

    verdict: Verdict
    findings: tuple[dict[str, Any], ...] = ()
    unconfirmed: tuple[dict[str, Any], ...] = ()
    analysed: bool = True

    def detail(self) -> dict[str, Any]:
        """The conclusion as JSON values for the detail of an event, from which `of` reads it."""
        detail: dict[str, Any] = {"verdict": self.verdict.name.value, "reasons": list(self.verdict.reasons)}
        detail |= {"findings": list(self.findings)} if self.findings else {}
        detail |= {"unconfirmed": list(self.unconfirmed)} if self.unconfirmed else {}
        return detail if self.analysed else detail | {"analysed": False}

    @classmethod
    def of(cls, detail: Mapping[str, Any]) -> "Conclusion":
        """Read a conclusion from an event's detail. Raises ValueError, KeyError or TypeError for an invalid one."""
        verdict = Verdict(VerdictName(detail["verdict"]), tuple(str(reason) for reason in detail["reasons"]))
        findings, unconfirmed = (
            tuple(dict(each) for each in detail.get(name, ())) for name in ("findings", "unconfirmed")
        )
        return cls(verdict, findings, unconfirmed, detail.get("analysed", True) is not False)


def unanalysed(directory: Path, why: str) -> Conclusion:
    """Conclusion on a run whose report could not be made."""
    reason = f"The analysis could not be made: {why.rstrip('.')}. `cliffwatch run report {directory.name}` makes it."
    return Conclusion(Verdict(VerdictName.INVALID, (reason,)), analysed=False)
