"""Digests that name things and seal files: BLAKE2b as Python itself has it.

`hashlib`, `hmac` and `secrets` load OpenSSL, whose start takes 6 ms of a process.
"""

from __future__ import annotations

from _operator import _compare_digest as is_same

try:
    from _blake2 import blake2b as blake2b
except ImportError:  # an interpreter that was built without it
    from hashlib import blake2b as blake2b

__all__ = ["blake2b", "hex_digest", "is_same"]


def hex_digest(text: str, size: int = 16) -> str:
    """``size`` bytes of a text's digest as twice so many hexadecimal digits."""
    return blake2b(text.encode(), digest_size=size).hexdigest()
