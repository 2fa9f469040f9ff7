"""What an agent remembers over its restarts, in one file on the host.

Enough to serve before the API server answers, and without reading any text: the last good configuration as a value.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path

from gpushare import __version__
from gpushare.api.sharing import SharingConfig
from gpushare.domain.devices import GPU
from gpushare.domain.troubles import Trouble
from gpushare.host import values
from gpushare.host.files import write_atomically


@dataclass(frozen=True, slots=True, kw_only=True)
class LastGood:
    """A configuration that was in force."""

    content: str
    """The text, byte for byte."""
    mig_strategy: str
    """What was said beside the text; empty: the text decides."""
    name: str = ""
    """For people: the key or the file that the text came from."""
    config: SharingConfig | None
    """What the text means; None where another version wrote it, so that the text has to be read again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Everything remembered."""

    last_good: LastGood | None = None
    resources: tuple[str, ...] = ()
    """Every resource that was ever registered: they stay so, with nothing in them, for a node shows 0 then, not a ghost."""
    gpus: tuple[GPU, ...] = ()
    """As last read: one that cannot be read after a restart keeps its place."""
    troubles: tuple[Trouble, ...] = ()
    """What was wrong with the devices: a restart mends none of it."""


class StateFile:
    """The file; damage and a full disk are warnings, never failures."""

    def __init__(self, path: Path, log: logging.Logger) -> None:
        self._path = path
        self._log = log
        self._written: State | None = None
        self._failure = ""

    @property
    def is_behind(self) -> bool:
        """Whether the last state could not be written: the file tells of an earlier one."""
        return bool(self._failure)

    def read(self) -> State:
        """What was remembered; nothing, where the file is not there or makes no sense."""
        try:
            data = json.loads(self._path.read_text(encoding="utf-8"))
            version = data.pop("version", None)
            if version != __version__ and data.get("last_good"):
                data["last_good"]["config"] = None
            state = values.decode(State, data)
        except FileNotFoundError:
            return State()
        except (OSError, ValueError, TypeError, AttributeError) as error:
            self._log.warning("state file unusable: starting afresh", extra={"reason": str(error)})
            return State()
        self._written = state
        return state

    def write(self, state: State) -> None:
        """Remembers; does nothing when nothing changed. A failure is said once, however often it is tried."""
        if state == self._written:
            self._failure = ""
            return
        try:
            write_atomically(self._path, json.dumps({"version": __version__, **values.encode(state)}, indent=1) + "\n")
        except OSError as error:
            before, self._failure = self._failure, error.strerror or str(error)
            if self._failure != before:
                extra = {"path": str(self._path), "reason": self._failure}
                self._log.warning("state file cannot be written", extra=extra)
            return
        self._written, self._failure = state, ""
