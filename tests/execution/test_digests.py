"""Digests are those of `hashlib`, with and without the module that Python itself has."""

from __future__ import annotations

import hashlib
import hmac
import subprocess
import sys

import pytest

from gquery.runtime.digests import blake2b, hex_digest, is_same

WITHOUT = (
    "import sys; sys.modules['_blake2'] = None; from gquery.runtime import digests; print(digests.hex_digest('a', 16))"
)


@pytest.mark.parametrize("text", ["", "a", "ä\0" * 1000])
def test_they_are_hashlib_s(text: str) -> None:
    data = text.encode()
    assert hex_digest(text) == hashlib.blake2b(data, digest_size=16).hexdigest()
    assert hex_digest(text, 6) == hashlib.blake2b(data, digest_size=6).hexdigest()
    made = blake2b(b"x", key=b"k", digest_size=32)
    made.update(data)
    assert made.digest() == hashlib.blake2b(b"x" + data, key=b"k", digest_size=32).digest()


@pytest.mark.parametrize(("a", "b"), [(b"ab", b"ab"), (b"ab", b"ac"), (b"ab", b"abc"), (b"", b"")])
def test_comparison_is_hmac_s(a: bytes, b: bytes) -> None:
    assert is_same(a, b) == hmac.compare_digest(a, b) == (a == b)


def test_an_interpreter_without_them_takes_hashlib_s() -> None:
    """Python can be built without BLAKE2; a name in `sys.modules` that is None cannot be imported."""
    code = "import hashlib; " + WITHOUT  # which has its own by then
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == hex_digest("a", 16)
