"""Accounts with passwords, sessions and tokens; the caller brings the clock."""


class AuthError(Exception):
    """A login, a session or a token was refused."""


class AuthService:
    """The accounts of an application; `clock()` returns the time in seconds."""

    def __init__(self, clock) -> None:
        self._clock = clock
        self._passwords = {}
        self._changed = {}
        self._failures = {}
        self._locked = {}
        self._sessions = {}
        self._tokens = {}
        self._count = 0

    def set_password(self, name: str, password: str) -> None:
        """Open an account, or give it a new password.

        A password has 8 to 64 characters, at least two of them digits, and is none of the account's last four.
        Raises ValueError otherwise.
        """
        length: int = len(password)
        digits: int = sum(character.isdigit() for character in password)
        if length < 8 or length > 64 or digits < 2:
            raise ValueError("wrong length or too few digits")
        used: list[str] = self._passwords.get(name, [])
        if password in used[-4:]:
            raise ValueError("used before")
        self._passwords[name] = [*used, password]
        self._changed[name] = self._clock()

    def must_change(self, name: str) -> bool:
        """Tell whether an account's password is older than 90 days."""
        now: float = self._clock()
        changed: float = self._changed[name]
        return now - changed > 90 * 86400

    def login(self, name: str, password: str, remember: bool = False) -> str:
        """Begin a session and return its id. Raises AuthError for an unknown name or a wrong password.

        Three wrong passwords in a row lock an account for 15 minutes, in which the right one is refused too. A sixth
        session of an account ends its oldest. A session ends when it is not used for more than 30 minutes, or for
        more than 14 days if it is to be remembered.
        """
        now: float = self._clock()
        if now < self._locked.get(name, 0.0):
            raise AuthError("locked")
        if name not in self._passwords or password != self._passwords[name][-1]:
            failures: int = self._failures.get(name, 0) + 1
            if failures >= 3:
                self._locked[name] = now + 15 * 60
                failures = 0
            self._failures[name] = failures
            raise AuthError("wrong name or password")
        self._failures[name] = 0
        self._count += 1
        session = f"session-{self._count}"
        self._sessions[session] = (name, 14 * 86400 if remember else 30 * 60, now)
        own = [known for known, facts in self._sessions.items() if facts[0] == name]
        sessions: int = len(own)
        if sessions > 5:
            del self._sessions[own[0]]
        return session

    def whose_session(self, session: str) -> str:
        """Return whose session it is; this uses it. Raises AuthError when it has ended."""
        now: float = self._clock()
        name, lifetime, used = self._sessions.get(session, ("", 0.0, now - 1))
        if now - used > lifetime:
            raise AuthError("no such session")
        self._sessions[session] = (name, lifetime, now)
        return name

    def issue_token(self, name: str, days: int) -> str:
        """Return a token that is valid for 1 to 30 days of 24 hours. Raises ValueError for other numbers of days."""
        if days < 1 or days > 30:
            raise ValueError("wrong number of days")
        now: float = self._clock()
        self._count += 1
        token = f"token-{self._count}"
        self._tokens[token] = (name, now + days * 86400)
        return token

    def whose_token(self, token: str) -> str:
        """Return for whom a token was issued. Raises AuthError when its time is over."""
        name, end = self._tokens.get(token, ("", 0.0))
        if self._clock() >= end:
            raise AuthError("no such token")
        return name
