"""Signals while a run is under way: which are a wish, and which stop it now."""

import signal

import pytest

from elmo_cli.training.signals import StopSignals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_is_only_noted(number: int) -> None:
    with StopSignals() as signals:
        signal.raise_signal(number)
    assert signals.received == number


def test_a_second_sigint_stops_now() -> None:
    with StopSignals():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_sigterm_again_and_again_does_not_disturb_the_saving() -> None:
    with StopSignals() as signals:
        for _ in range(3):
            signal.raise_signal(signal.SIGTERM)
    assert signals.received == signal.SIGTERM


def test_sigint_twice_stops_now_also_after_a_sigterm() -> None:
    with StopSignals():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.raise_signal(number)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_afterwards_signals_mean_what_they_did() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with StopSignals():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_hang_up_that_is_set_aside_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopSignals() as signals:
            signal.raise_signal(signal.SIGHUP)
        assert signals.received is None
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
