"""Lines of a command, read into windows of 10 s."""

from cliffwatch.engines.command.definition import Output
from cliffwatch.engines.command.formats import LineReader, reader_of
from cliffwatch.engines.command.windows import CommandWindows
from cliffwatch.model.window import EngineWindow

START = 1_790_000_000.0


def read(output: dict[str, object], *, ahead: float = 0.0) -> tuple[CommandWindows, LineReader]:
    windows = CommandWindows("write", START, 10.0, None)
    return windows, reader_of(Output.model_validate(output), windows, ahead, START)


def taken(windows: CommandWindows, measured_seconds: float | None = None) -> EngineWindow:
    window = windows.take(measured_seconds)
    assert window is not None, "a line reports it"
    return window
