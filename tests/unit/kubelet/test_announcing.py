"""One message to many streams."""

from __future__ import annotations

from gpushare.kubelet.announcing import MAX_STREAMS, Announcer


def stays(_: object) -> bool:
    return True


def test_slow_stream_skips() -> None:
    """Only the newest message matters."""
    announcer = Announcer("a")
    stream = announcer.follow(stays)
    assert next(stream) == "a"

    announcer.publish("b")
    announcer.publish("c")

    assert next(stream) == "c"
    stream.close()
    assert announcer.streams == 0


def test_end() -> None:
    """Ends what is open, not what opens later."""
    announcer = Announcer("a")
    stream = announcer.follow(stays)
    next(stream)

    announcer.end()

    assert list(stream) == []
    later = announcer.follow(stays)
    assert next(later) == "a"
    later.close()


def test_client_that_has_gone_already() -> None:
    """Nobody waits for a client that left before its stream began."""
    assert list(Announcer("a").follow(lambda _: False)) == []


def test_wait_sent() -> None:
    """Sent means asked for the next one."""
    announcer = Announcer("a")
    stream = announcer.follow(stays)
    next(stream)
    assert not announcer.wait_sent(0)

    announcer.publish("b")
    next(stream)
    announcer.end()

    assert announcer.wait_sent(0)


def test_oldest_stream_makes_room() -> None:
    """One stream too many ends the oldest."""
    announcer = Announcer("a")
    streams = [announcer.follow(stays) for _ in range(MAX_STREAMS + 1)]
    for stream in streams:
        next(stream)

    assert announcer.streams == MAX_STREAMS
    assert list(streams[0]) == []
    for stream in streams[1:]:
        stream.close()
