"""One current message, sent to every open stream: the whole of ListAndWatch. Used by the plugin server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

MAX_STREAMS = 4
"""Each stream holds a thread of its server, which has few; with one more, the oldest ends."""


class _Stream:
    """One open stream and what went out on it."""

    __slots__ = ("ended", "sent")

    def __init__(self) -> None:
        self.ended = False
        self.sent = -1
        """Number of the last message that was handed to the transport."""


class Announcer(Generic[T]):
    """Sends the newest message to every stream. A slow stream skips what is out of date. Safe in threads."""

    def __init__(self, first: T) -> None:
        self._message = first
        self._number = 0
        self._streams: list[_Stream] = []
        self._changed = threading.Condition()

    @property
    def streams(self) -> int:
        """How many are open now."""
        return len(self._streams)

    def publish(self, message: T) -> None:
        """Makes this the current message."""
        with self._changed:
            self._message = message
            self._number += 1
            self._changed.notify_all()

    def follow(self, on_close: Callable[[Callable[[], None]], bool]) -> Iterator[T]:
        """The current message, then each newer one, until the client goes or `end` is called.

        `on_close` takes the function to call when the client has gone, which nobody who only waits here would notice;
        it answers False when the client has gone already.
        """
        stream = _Stream()
        with self._changed:
            self._streams.append(stream)
            for surplus in self._streams[:-MAX_STREAMS]:
                self._close(surplus)
        try:
            if not on_close(lambda: self._leave(stream)):
                return
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: stream.ended or stream.sent != self._number)
                    if stream.ended:
                        return
                    number, message = self._number, self._message
                yield message
                # Sent only now: the server asks for the next message once the transport has taken this one.
                with self._changed:
                    stream.sent = number
                    self._changed.notify_all()
        finally:
            self._leave(stream)

    def end(self) -> None:
        """Ends every stream that is open now."""
        with self._changed:
            for stream in tuple(self._streams):
                self._close(stream)

    def wait_sent(self, seconds: float) -> bool:
        """Waits until every open stream has carried the current message; False when that took too long."""
        with self._changed:
            return self._changed.wait_for(
                lambda: all(stream.sent == self._number for stream in self._streams), timeout=seconds
            )

    def _leave(self, stream: _Stream) -> None:
        with self._changed:
            self._close(stream)

    def _close(self, stream: _Stream) -> None:
        stream.ended = True
        if stream in self._streams:
            self._streams.remove(stream)
        self._changed.notify_all()
