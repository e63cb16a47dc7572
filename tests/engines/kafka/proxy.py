"""A TCP proxy that does to connections what networks do: delays, cuts, truncates, garbles, loses."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

from testkit.kafka_broker import HOST

CHUNK_BYTES = 64 * 1024


class Proxy:
    """Passes on between the clients of `port` and a port behind it, in a thread of its own.

    Faults are set from any thread and hold for what passes afterwards. `connections` counts those that were made.
    """

    def __init__(self, behind: int) -> None:
        self._behind = behind
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self.connections = 0
        self.delay_seconds = 0.0
        #: Of what the broker answers, this many bytes more pass before the connection is cut; None for all.
        self.truncate_after_bytes: int | None = None
        #: Of what the broker answers, this many bytes more pass before one byte is changed; None for never.
        self.garble_after_bytes: int | None = None
        #: Whether what the broker answers gets lost, while it still gets what it is asked.
        self.swallows_answers = False
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._serve, HOST, 0))
        self.port = int(self._server.sockets[0].getsockname()[1])

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def behave(self) -> None:
        """No faults from now on."""
        self.delay_seconds = 0.0
        self.truncate_after_bytes = None
        self.garble_after_bytes = None
        self.swallows_answers = False

    def cut(self) -> None:
        """End all connections at once, in the middle of whatever passes."""
        self._call(self._abort())

    def close(self) -> None:
        """End it all."""
        self._server.close()
        self._call(self._abort())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _abort(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            behind_reader, behind_writer = await asyncio.open_connection(HOST, self._behind)
        except OSError:
            writer.transport.abort()
            return
        pair = {writer, behind_writer}
        self._writers |= pair
        try:
            await asyncio.gather(
                self._pass(reader, behind_writer, pair, is_answer=False),
                self._pass(behind_reader, writer, pair, is_answer=True),
            )
        finally:
            self._writers -= pair

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        pair: set[asyncio.StreamWriter],
        *,
        is_answer: bool,
    ) -> None:
        try:
            while chunk := await reader.read(CHUNK_BYTES):
                if is_answer and self.swallows_answers:
                    continue
                if self.delay_seconds:
                    await asyncio.sleep(self.delay_seconds)
                passed = self._spoil(chunk) if is_answer else chunk
                writer.write(passed)
                await writer.drain()
                if len(passed) < len(chunk):
                    break
        except (ConnectionError, OSError):
            pass
        finally:
            for one in pair:
                one.close()

    def _spoil(self, chunk: bytes) -> bytes:
        if self.truncate_after_bytes is not None:
            if len(chunk) > self.truncate_after_bytes:
                chunk, self.truncate_after_bytes = chunk[: self.truncate_after_bytes], None
            else:
                self.truncate_after_bytes -= len(chunk)
        if self.garble_after_bytes is not None:
            if len(chunk) > self.garble_after_bytes:
                at, self.garble_after_bytes = self.garble_after_bytes, None
                chunk = chunk[:at] + bytes([chunk[at] ^ 0x5A]) + chunk[at + 1 :]
            else:
                self.garble_after_bytes -= len(chunk)
        return chunk
