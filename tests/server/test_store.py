import pytest

from autotest_env.errors import EpisodeInUseError, GraderBusyError, NoEpisodeError, UnknownEpisodeError
from autotest_env.server.episodes import ActionKind
from autotest_env.server.store import MIN_IDLE_ENDED_S, MIN_IDLE_S, EpisodeStore


class ScriptedClock:
    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s


def test_without_an_id_a_peer_means_its_own_latest_episode(open_episode):
    store = EpisodeStore()
    for episode_id, peer in (("a", "1.1.1.1"), ("b", "2.2.2.2"), ("c", "1.1.1.1")):
        store.add(open_episode(episode_id), peer=peer)
    store.add(open_episode("d"), peer=None)
    assert store.find(None, "1.1.1.1").id == "c"
    assert store.find(None, "2.2.2.2").id == "b"
    assert store.find("a", "9.9.9.9").id == "a"


def test_a_peer_that_never_reset_has_no_episode():
    with pytest.raises(NoEpisodeError, match="reset first"):
        EpisodeStore().find(None, "1.1.1.1")


def test_an_unknown_id_is_refused_without_echo():
    with pytest.raises(UnknownEpisodeError) as caught:
        EpisodeStore().find("zyxw", "1.1.1.1")
    assert "zyxw" not in str(caught.value)


def test_the_id_of_an_open_episode_is_refused_and_free_again_after_the_end(open_episode):
    store = EpisodeStore()
    first = open_episode("a")
    store.add(first, peer=None)
    with pytest.raises(EpisodeInUseError):
        store.opened("a", None, "")
    with pytest.raises(EpisodeInUseError):
        store.add(open_episode("a"), peer=None, request_id="r")
    first.step(ActionKind.DONE)
    assert store.opened("a", None, "") is None
    second = open_episode("a")
    assert store.add(second, peer=None) is second
    assert store.find("a", "") is second


def test_the_same_reset_request_gets_the_episode_it_opened(open_episode):
    store = EpisodeStore()
    first = open_episode("a")
    store.add(first, peer=None, request_id="r")
    assert store.opened("a", "r", "") is first
    assert store.add(open_episode("a"), peer=None, request_id="r") is first


def test_the_same_reset_request_without_an_id_gets_the_episode_that_it_opened_at_its_address(open_episode):
    store = EpisodeStore()
    first = open_episode("a")
    store.add(first, peer="1.1.1.1", request_id="r")
    store.add(open_episode("b"), peer="1.1.1.1", request_id="s")
    assert store.opened(None, "r", "1.1.1.1") is first
    assert store.find(None, "1.1.1.1") is first
    assert store.add(open_episode("c"), peer="1.1.1.1", request_id="r") is first
    assert store.opened(None, "r", "2.2.2.2") is None
    assert store.opened(None, None, "1.1.1.1") is None


def test_a_reset_request_is_new_again_when_its_episode_has_ended_or_is_dropped(open_episode):
    clock = ScriptedClock()
    store = EpisodeStore(clock, capacity=1)
    ended = open_episode("a")
    store.add(ended, peer="1.1.1.1", request_id="r")
    ended.step(ActionKind.DONE)
    assert store.opened(None, "r", "1.1.1.1") is None
    clock.now_s = MIN_IDLE_S + 1
    second = open_episode("b")
    assert store.add(second, peer="1.1.1.1", request_id="r") is second
    assert store.opened(None, "r", "1.1.1.1") is second
    clock.now_s *= 3
    store.add(open_episode("c"), peer="2.2.2.2")
    assert store.opened(None, "r", "1.1.1.1") is None


def test_a_full_store_drops_the_longest_idle(open_episode):
    clock = ScriptedClock()
    store = EpisodeStore(clock, capacity=2)
    store.add(open_episode("a"), peer="1.1.1.1")
    store.add(open_episode("b"), peer="2.2.2.2")
    clock.now_s = 10.0
    store.find("a", "")
    clock.now_s = MIN_IDLE_S + 1
    store.add(open_episode("c"), peer="3.3.3.3")
    assert len(store) == 2
    assert store.find("a", "").id == "a"
    with pytest.raises(UnknownEpisodeError):
        store.find("b", "")
    with pytest.raises(NoEpisodeError):
        store.find(None, "2.2.2.2")


def test_an_ended_episode_makes_room_before_an_open_one(open_episode):
    clock = ScriptedClock()
    store = EpisodeStore(clock, capacity=2)
    ended = open_episode("b")
    store.add(open_episode("a"), peer=None)
    store.add(ended, peer=None)
    ended.step(ActionKind.DONE)
    with pytest.raises(GraderBusyError):
        store.add(open_episode("c"), peer=None)
    clock.now_s = MIN_IDLE_ENDED_S
    store.add(open_episode("c"), peer=None)
    assert store.find("a", "").id == "a"
    with pytest.raises(UnknownEpisodeError):
        store.find("b", "")


def test_ended_episodes_are_dropped_after_minutes_and_open_ones_stay(open_episode):
    clock = ScriptedClock()
    store = EpisodeStore(clock)
    for name in ("open", "ended", "ended and used"):
        store.add(open_episode(name), peer=None)
        if name != "open":
            store.find(name, "").step(ActionKind.DONE)
    clock.now_s = MIN_IDLE_ENDED_S / 2
    store.find("ended and used", "")
    clock.now_s = MIN_IDLE_ENDED_S
    store.add(open_episode("another"), peer=None)
    assert store.find("open", "").id == "open"
    assert store.find("ended and used", "").id == "ended and used"
    with pytest.raises(UnknownEpisodeError):
        store.find("ended", "")
    assert len(store) == 3


def test_nobody_loses_an_episode_within_an_hour(open_episode):
    clock = ScriptedClock()
    store = EpisodeStore(clock, capacity=1)
    store.add(open_episode("a"), peer=None)
    clock.now_s = MIN_IDLE_S - 1
    with pytest.raises(GraderBusyError) as caught:
        store.add(open_episode("b"), peer=None)
    assert caught.value.retry_after_s == 1
    assert store.find("a", "").id == "a"


def test_ten_thousand_episodes_are_kept(open_episode):
    store = EpisodeStore(ScriptedClock())
    for number in range(10_000):
        store.add(open_episode(str(number)), peer=None)
    assert store.find("0", "").id == "0"
    with pytest.raises(GraderBusyError):
        store.add(open_episode("one too many"), peer=None)
