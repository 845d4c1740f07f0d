"""Seeds are hashed, never added: neighbouring seeds share nothing."""

import hashlib
import hmac
import random

CLASSIC = "classic"
"""The split of the default program of each family: index n is the task of seed n."""

MAX_SEED = 2**63 - 1
"""Largest seed accepted; the smallest is 0."""


def rng_for(*parts: object) -> random.Random:
    """Return a generator seeded by SHA-256 of the parts, e.g. ``rng_for("unit_test_writer", 1, seed)``."""
    text = "\x1f".join(str(part) for part in parts)
    return random.Random(hashlib.sha256(text.encode()).digest())


def secret_rng(secret: bytes, *parts: object) -> random.Random:
    """Return a generator that nobody can follow without the secret: seeded by HMAC-SHA-256 of the parts."""
    text = "\x1f".join(str(part) for part in parts)
    return random.Random(hmac.new(secret, text.encode(), hashlib.sha256).digest())
