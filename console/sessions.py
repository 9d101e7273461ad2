"""Login sessions, by the random token in a browser's cookie, and a limit on guesses of passwords.

Times are trio's. A session ends after ``IDLE_SECONDS`` in which no page was asked for by a person, in any case after
``LONGEST_SECONDS``, when its user logs out, and when what the broker knows of the user's password changes. What it is being
answered then is cut off.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections import OrderedDict, deque
from collections.abc import Hashable

import trio

from ..security.principal import Principal

IDLE_SECONDS = 30 * 60.0
LONGEST_SECONDS = 12 * 3600.0
MOST_SESSIONS = 1000
MOST_OF_ONE_USER = 16
GUESSES, GUESS_SECONDS = 10, 60.0
"""So many wrong passwords are looked at in so many seconds, from one address, and for one user."""
_MOST_GUESSED = 10_000


@dataclasses.dataclass(eq=False)
class Session:
    """A login session."""

    token: str
    principal: Principal
    known: Hashable
    """What the broker had of the user's passwords at the login; the session ends when this changes."""
    ends: float
    """trio's time at which the session is over, however much it is used."""
    seen: float
    """trio's time of the last use by a person."""
    scopes: set[trio.CancelScope] = dataclasses.field(default_factory=set)
    """Of the responses being sent, and of copies of records, which are cut off when the session ends."""

    @property
    def is_over(self) -> bool:
        now = trio.current_time()
        return now >= self.ends or now >= self.seen + IDLE_SECONDS


class Sessions:
    """A bounded number of them: of one user's, and of all, those that were not used for longest go first."""

    def __init__(self) -> None:
        self._by_token: OrderedDict[str, Session] = OrderedDict()

    def begin(self, principal: Principal, known: Hashable, seconds: float) -> Session:
        """A session with a token of its own, which nobody had before."""
        now = trio.current_time()
        session = Session(secrets.token_urlsafe(32), principal, known, now + min(seconds, LONGEST_SECONDS), now)
        own = [each for each in self._by_token.values() if each.principal == principal]
        for each in own[: max(0, len(own) + 1 - MOST_OF_ONE_USER)]:
            self.end(each)
        while len(self._by_token) >= MOST_SESSIONS:
            self.end(next(iter(self._by_token.values())))
        self._by_token[session.token] = session
        return session

    def find(self, token: str) -> Session | None:
        """None where there is none, or it is over."""
        session = self._by_token.get(token)
        if session is not None and session.is_over:
            self.end(session)
            return None
        return session

    def use(self, session: Session) -> None:
        """A person has done something."""
        session.seen = trio.current_time()
        self._by_token.move_to_end(session.token)

    def end(self, session: Session) -> None:
        """Forget it, and cut off what is being answered; safe to call twice."""
        self._by_token.pop(session.token, None)
        for scope in session.scopes:
            scope.cancel()


class Guesses:
    """Wrong passwords, by address and by user."""

    def __init__(self) -> None:
        self._times: OrderedDict[str, deque[float]] = OrderedDict()

    def begin(self, *keys: str) -> bool:
        """Count an attempt, which is a wrong one until ``was_right``; False where there were too many already."""
        now = trio.current_time()
        attempts = [self._of(key) for key in keys]
        for times in attempts:
            while times and times[0] <= now - GUESS_SECONDS:
                times.popleft()
        if any(len(times) >= GUESSES for times in attempts):
            return False
        # Before the password is checked: otherwise any number of guesses could be under way at once.
        for times in attempts:
            times.append(now)
        return True

    def was_right(self, *keys: str) -> None:
        """The last attempt was none to count."""
        for key in keys:
            times = self._times.get(key)
            if times:
                times.pop()

    def _of(self, key: str) -> deque[float]:
        times = self._times.setdefault(key, deque())
        self._times.move_to_end(key)
        if len(self._times) > _MOST_GUESSED:
            self._times.popitem(last=False)
        return times
