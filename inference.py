"""The baseline command: play every task family with a policy that sees the wire and nothing else.

    python inference.py --seed 42

Only the log lines of `agents/journal.py` go to stdout, and every episode that began gets its [END]: after an exception,
when the server does not start, after Ctrl-C or SIGTERM. The main thread does nothing but wait for the end or a signal;
the episodes run in threads of their own.
"""

import queue
import signal

if __name__ == "__main__":  # before the imports that take time: a signal in that moment leaves complete lines as well
    signals: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # nohup means it
            signal.signal(number, lambda received, _frame: signals.put(128 + received))

import collections
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

if find_spec("autotest_env") is None:
    sys.exit("autotest-env is not installed in this Python; in its folder run: python -m pip install -e .")

from autotest_env.agents.journal import EpisodeLog, Journal
from autotest_env.agents.options import KEY_VARIABLES, Options, PlannedEpisode, read_options
from autotest_env.errors import AutotestError, SetupError

SERVER = ("-m", "autotest_env.server.app", "--host", "127.0.0.1", "--port", "0")
START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 10.0
WAKE_S = 0.1

Player = Callable[[PlannedEpisode, EpisodeLog], None]

_LISTENING = re.compile(r"\blistening on (?P<url>http://\S+)")


class LocalServer:
    """A server of our own on a free loopback port, in its own session: Ctrl-C reaches it through us only."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False
        self._url: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._said: collections.deque[str] = collections.deque(maxlen=20)

    def start(self) -> None:
        """Start the process; `url` waits until it listens. After `stop` this does nothing."""
        # The keys are the model's business: a process that runs untrusted suites does not get them.
        environ = {name: value for name, value in os.environ.items() if name not in KEY_VARIABLES}
        with self._lock:
            if self._stopped:
                return
            self._process = subprocess.Popen(  # noqa: S603  nothing of it comes from outside
                [sys.executable, *SERVER],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=environ,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        threading.Thread(target=self._listen, args=(self._process.stderr,), daemon=True).start()

    def url(self) -> str:
        """Return the address once the server listens. Raises SetupError with what the server said."""
        process = self._process
        url = None
        for _ in range(START_TIMEOUT_S):
            gone = process is None or process.poll() is not None
            with contextlib.suppress(queue.Empty):
                url = self._url.get(timeout=1)
            if url or gone:
                break
        if url is None:
            raise SetupError("the server did not start; it said: " + (" | ".join(self._said) or "nothing"))
        return url

    def stop(self) -> None:
        """Stop the server, if it was started, and never start it again."""
        with self._lock:
            self._stopped = True
            if self._process is None:
                return
            self._process.terminate()
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()

    def _listen(self, stderr: TextIO) -> None:
        for line in stderr:
            self._said.append(line.rstrip())
            if match := _LISTENING.search(line):
                self._url.put(match["url"])


class Baseline:
    """All planned episodes against one server; made to run beside a main thread that waits."""

    def __init__(self, options: Options, journal: Journal, server: LocalServer) -> None:
        self._options = options
        self._journal = journal
        self._server = server
        self._todo: queue.SimpleQueue[tuple[PlannedEpisode, EpisodeLog]] = queue.SimpleQueue()
        self._logs = [journal.plan(episode.family, episode.seed) for episode in options.plan]
        for planned in zip(options.plan, self._logs, strict=True):
            self._todo.put(planned)
        self._logs[0].start()

    def run(self) -> bool:
        """Play everything; True when no episode met an error."""
        try:
            self._play_all()
        except Exception as error:  # noqa: BLE001  border: the command; [END] is promised whatever happens
            say(described(error))
            self._journal.close(described(error), unstarted=True)
        return all(log.ended and log.error is None for log in self._logs)

    def _play_all(self) -> None:
        if self._options.base_url is None:
            self._server.start()
        play = self._player(self._options.base_url)
        threads = [
            threading.Thread(target=self._work, args=(play,), daemon=True) for _ in range(self._options.concurrency)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _player(self, url: str | None) -> Player:
        """Return what plays one episode; by now the server starts, so this takes the seconds that openenv needs."""
        from autotest_env.agents.loop import play  # noqa: PLC0415
        from autotest_env.agents.policies import policy_maker  # noqa: PLC0415
        from autotest_env.client import AutoTestEnvClient  # noqa: PLC0415

        make_policy = policy_maker(self._options)
        address = url or self._server.url()

        def play_one(episode: PlannedEpisode, log: EpisodeLog) -> None:
            with AutoTestEnvClient(address) as env:
                play(env, make_policy(episode.seed), episode.params, log)

        return play_one

    def _work(self, play: Player) -> None:
        while not self._journal.broken:
            try:
                episode, log = self._todo.get_nowait()
            except queue.Empty:
                return
            log.start()
            error = None
            try:
                play(episode, log)
            except Exception as failure:  # noqa: BLE001  border: the command; [END] is promised whatever happens
                error = described(failure)
                say(f"{episode.family}, seed {episode.seed}: {error}")
            log.end(error)


def described(error: Exception) -> str:
    """Return an error in words: ours speak for themselves, others need their class."""
    ours = isinstance(error, AutotestError)
    return str(error) if ours else f"{type(error).__name__}: {error}"


def say(text: str) -> None:
    """Tell a person something, if one is there."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            sys.stderr.write(f"inference: {text}\n")
            sys.stderr.flush()


def fill_descriptors() -> None:
    """Put something where stdin, stdout or stderr are closed, or the next file opened would be taken for it."""
    while (last := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(last)


def private_stdout() -> TextIO:
    """Return a writer on stdout that nobody else has; what others print goes to stderr from now on."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace", newline="\n")
    os.dup2(2, 1)
    return out


def main(inbox: queue.SimpleQueue[int]) -> int:
    """Run the command and return its exit code: 0, 1 after an error, 2 for bad options, 128 + n after signal n.

    The inbox gets 128 + n for each signal n.
    """
    fill_descriptors()
    options = read_options(None, os.environ)
    reach_loopback_directly()
    records = open_records(options.out)
    journal = Journal(private_stdout(), options.model, records)
    server = LocalServer()
    baseline = Baseline(options, journal, server)
    remove_temporary_files = keep_temporary_files_together()
    say(f"policy {options.model}, {len(options.plan)} episode(s)")

    def run() -> None:
        code = 1
        try:
            code = 0 if baseline.run() else 1
        finally:
            inbox.put(code)

    threading.Thread(target=run, daemon=True).start()
    code = wait_for(inbox)
    journal.close(f"interrupted by {signal.Signals(code - 128).name}" if code > 128 else "the run broke off")
    server.stop()
    remove_temporary_files()
    return code


def keep_temporary_files_together() -> Callable[[], None]:
    """Have all temporary files made in one folder; return what removes it, whoever is still at work there."""
    try:
        folder = tempfile.mkdtemp(prefix="autotest-")
    except OSError:
        return lambda: None
    tempfile.tempdir = folder
    return lambda: shutil.rmtree(folder, ignore_errors=True)


def wait_for(inbox: queue.SimpleQueue[int]) -> int:
    """Wait for the first message, waking up often: a signal that arrives just before a wait begins does not end it."""
    while True:
        with contextlib.suppress(queue.Empty):
            return inbox.get(timeout=WAKE_S)


def reach_loopback_directly() -> None:
    """Keep a configured proxy away from our own server and from local models."""
    for name in ("no_proxy", "NO_PROXY"):
        os.environ[name] = ",".join(filter(None, (os.environ.get(name), "127.0.0.1", "localhost")))


def open_records(folder: Path | None) -> TextIO | None:
    """Open the file of --out, anew; exits with 2 when that cannot be."""
    if folder is None:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return (folder / "episodes.jsonl").open("w", encoding="utf-8")
    except OSError as error:
        say(f"--out: cannot write to {str(folder)!r}: {error.strerror}")
        sys.exit(2)


if __name__ == "__main__":
    exit_code = main(signals)
    # Threads may still wait for a model or the server; nothing of theirs is worth waiting for.
    os._exit(exit_code)
