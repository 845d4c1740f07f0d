"""The episodes of HTTP callers, by id and by peer address."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from autotest_env.errors import EpisodeInUseError, GraderBusyError, NoEpisodeError, UnknownEpisodeError
from autotest_env.server.episodes import Episode

MAX_EPISODES = 10_000
MIN_IDLE_S = 3600.0
MIN_IDLE_ENDED_S = 300.0
"""An ended episode still answers retries; nobody retries for longer than this."""
_SWEEP_S = 30.0


@dataclass(slots=True)
class _Kept:
    episode: Episode
    used_at: float
    peer: str | None
    """Address of the caller who reset without an id."""
    request_id: str | None
    """Of the reset that opened it."""


class EpisodeStore:
    """Holds episodes. One that ended is dropped when it was idle for minutes; when the store is full, the longest idle
    one makes room, if idle for an hour.

    Clock: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, capacity: int = MAX_EPISODES) -> None:
        self._clock = clock
        self._capacity = capacity
        self._by_id: OrderedDict[str, _Kept] = OrderedDict()
        self._latest: dict[str, str] = {}
        self._by_request: dict[tuple[str, str], str] = {}
        """Peer and request id to the episode that the peer opened with it; dropped with the episode."""
        self._swept_at = clock()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._by_id)

    def opened(self, episode_id: str | None, request_id: str | None, peer: str) -> Episode | None:
        """Return the open episode which this very request opened before, if it did; without an id, the peer's request.

        Raises EpisodeInUseError when the id belongs to another open episode.
        """
        with self._lock:
            return self._opened_by(peer, request_id) if episode_id is None else self._opened(episode_id, request_id)

    def add(self, episode: Episode, *, peer: str | None, request_id: str | None = None) -> Episode:
        """Keep an episode and return it; with a peer it becomes what that peer means when it gives no id.

        Returns the earlier one when the same request opened one meanwhile. Raises EpisodeInUseError, or GraderBusyError
        when every episode kept is in use.
        """
        with self._lock:
            earlier = self._opened_by(peer, request_id) or self._opened(episode.id, request_id)
            if earlier is not None:
                return earlier
            if episode.id in self._by_id:
                self._drop(episode.id)
            self._sweep()
            if len(self._by_id) >= self._capacity:
                self._drop(self._longest_idle())
            self._by_id[episode.id] = _Kept(episode, self._clock(), peer, request_id)
            if peer is not None:
                self._latest[peer] = episode.id
                if request_id is not None:
                    self._by_request[peer, request_id] = episode.id
            return episode

    def find(self, episode_id: str | None, peer: str) -> Episode:
        """Return the episode of an id, or the peer's latest one opened without an id. Counts as using it.

        Raises UnknownEpisodeError or NoEpisodeError.
        """
        with self._lock:
            wanted = self._latest.get(peer) if episode_id is None else episode_id
            if wanted is None:
                raise NoEpisodeError("no episode was opened from this address without an id; call reset first")
            kept = self._by_id.get(wanted)
            if kept is None:
                raise UnknownEpisodeError("no such episode, or it has expired; call reset to open one")
            kept.used_at = self._clock()
            self._by_id.move_to_end(wanted)
            return kept.episode

    def _opened(self, episode_id: str, request_id: str | None) -> Episode | None:
        kept = self._by_id.get(episode_id)
        if kept is None or kept.episode.progress.ended is not None:
            return None
        if request_id is None or kept.request_id != request_id:
            raise EpisodeInUseError("this episode_id belongs to an open episode; use another id or leave it out")
        return kept.episode

    def _opened_by(self, peer: str | None, request_id: str | None) -> Episode | None:
        if peer is None or request_id is None:
            return None
        kept = self._by_id.get(self._by_request.get((peer, request_id), ""))
        if kept is None or kept.episode.progress.ended is not None:
            return None
        self._latest[peer] = kept.episode.id
        return kept.episode

    def _sweep(self) -> None:
        now = self._clock()
        if now - self._swept_at < _SWEEP_S:
            return
        self._swept_at = now
        for episode_id, kept in list(self._by_id.items()):
            if kept.episode.progress.ended is not None and now - kept.used_at >= MIN_IDLE_ENDED_S:
                self._drop(episode_id)

    def _longest_idle(self) -> str:
        now = self._clock()
        for episode_id, kept in self._by_id.items():
            least = MIN_IDLE_S if kept.episode.progress.ended is None else MIN_IDLE_ENDED_S
            if now - kept.used_at >= least:
                return episode_id
        oldest = next(iter(self._by_id.values()))
        wait_s = max(1, round(MIN_IDLE_S - (now - oldest.used_at)))
        raise GraderBusyError(
            f"all {self._capacity} episodes are in use; end episodes with done, or try again later",
            retry_after_s=min(wait_s, 60),
        )

    def _drop(self, episode_id: str) -> None:
        kept = self._by_id.pop(episode_id)
        if kept.peer is None:
            return
        if self._latest.get(kept.peer) == episode_id:
            del self._latest[kept.peer]
        if kept.request_id is not None and self._by_request.get((kept.peer, kept.request_id)) == episode_id:
            del self._by_request[kept.peer, kept.request_id]
