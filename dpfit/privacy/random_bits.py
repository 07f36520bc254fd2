"""The only module that makes random bits.

Every word is AES-256 of a counter, so it is a pure function of (run key, step, index): the same
for any block size, any partition of the coordinates and any machine (exactness.md, section 3).
Nothing here knows what the bits are for; only ``mechanisms/`` turns them into noise.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import sys
from typing import TYPE_CHECKING, NoReturn, Protocol

import numpy as np

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext
    from numpy.typing import NDArray

# Field widths of one AES block; a value that does not fit is refused, so no two draws collide.
STEP_LIMIT = 1 << 32
INDEX_LIMIT = 1 << 40
ROUND_LIMIT = 1 << 16
VARIABLE_LIMIT = 1 << 8
WORD_LIMIT = 1 << 8

_BLOCK_BYTES = 16
_KEY_BYTES = 32
_AUX_WORDS = 4


class RunKey:
    """The 256-bit key of one run.

    It is born in one process after the ledger's reservation is on disk, lives there only and is
    never written: it cannot be pickled, copied or used in a forked child. The same (key, step,
    index) on two different data vectors would cancel the noise exactly, so a crashed or repeated
    run needs a new key.

    Make one with `from_system` or `from_seed`.

    Attributes
    ----------
    reproducible : bool
        True for a key derived from a seed. Whoever knows the seed can subtract the noise, so
        such a run is not private.
    """

    __slots__ = ("_process", "_secret", "reproducible")

    def __init__(self, secret: bytes, *, reproducible: bool) -> None:
        if len(secret) != _KEY_BYTES:
            raise ValueError(f"a run key has {_KEY_BYTES} bytes, got {len(secret)}")
        self._secret = secret
        self._process = os.getpid()
        self.reproducible = reproducible

    @classmethod
    def from_system(cls) -> RunKey:
        """Fresh key from the operating system's generator."""
        return cls(os.urandom(_KEY_BYTES), reproducible=False)

    @classmethod
    def from_seed(cls, seed: int) -> RunKey:
        """Key that depends on the seed alone: SHA-256 of a domain label and its decimal digits."""
        digest = hashlib.sha256(b"dpfit run key from seed v1:%d" % seed).digest()
        return cls(digest, reproducible=True)

    def child(self, number: int) -> RunKey:
        """The key of one run of a search: runs must not share noise."""
        secret = self.subkey(f"search run {number}")
        return RunKey(secret, reproducible=self.reproducible)

    def check_process(self) -> None:
        """Refuse to serve a forked child, which would repeat its parent's noise."""
        if os.getpid() != self._process:
            raise RuntimeError("the run key belongs to another process; a child needs its own key")

    def subkey(self, purpose: str) -> bytes:
        """Independent 256-bit key for one purpose: HMAC-SHA256(key, purpose)."""
        self.check_process()
        return hmac.digest(self._secret, b"dpfit subkey v1:" + purpose.encode(), "sha256")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        # Pickling, copy.copy and copy.deepcopy all end here.
        raise TypeError("a run key can be neither pickled nor copied")

    def __repr__(self) -> str:
        return f"<RunKey reproducible={self.reproducible}>"


class WordStream(Protocol):
    """Consecutive 64-bit words of one step."""

    def take(self, count: int) -> NDArray[np.uint64]:
        """Next `count` words. The caller may overwrite them; the next call does."""


class RandomWords(Protocol):
    """What a sampler needs of a source of bits; tests put scripted words behind it."""

    def main(self, step: int, first: int) -> WordStream:
        """Stream of one word for each index `first`, `first` + 1, ... of a step."""

    def aux(
        self, step: int, index: NDArray[np.int64], round_: int, n_rounds: int
    ) -> NDArray[np.uint64]:
        """Four words for `n_rounds` rounds of each index, shape (len(index) * n_rounds, 4).

        Row i * n_rounds + k belongs to index[i] and round `round_` + k. The next call overwrites
        the array.
        """

    def deep(self, step: int, index: int, round_: int, variable: int, word: int) -> int:
        """Further 64-bit word number `word` of one variable of one trial."""


class BitSource:
    """Counter-based random words of one run key.

    Three AES-256 subkeys separate the kinds; within a kind the fields are packed side by side:

    * main: counter mode, counter block = step (64 bits), index // 2 (64 bits);
    * aux: block cipher over index (64 bits), step (32), round (16), half (16);
    * deep: block cipher over index (64 bits), step (32), round (16), variable (8), word (8).

    AES with blocks b differs from perfect bits by at most b² / 2^129 (switching lemma): below
    2^-56 for 2^36 blocks, that is 2^37 noise values a run.

    All mechanisms of a run share the steps: each noise vector needs a step of its own, whatever
    its law. Not thread-safe: each thread makes its own source from the shared key.

    Parameters
    ----------
    key : RunKey
        Key of this process.
    """

    def __init__(self, key: RunKey) -> None:
        self._key = key
        self._counter = _counter_cipher(key.subkey("main"))
        self._aux = _block_cipher(key.subkey("aux"))
        self._deep = _block_cipher(key.subkey("deep"))
        self._current: _CounterStream | None = None
        self._main_scratch = _Scratch()
        self._aux_scratch = _Scratch()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a source of a run key can be neither pickled nor copied")

    def main(self, step: int, first: int) -> WordStream:
        """Stream of one word for each index `first`, `first` + 1, ... of a step.

        A new stream ends the one before it, which then refuses: they share cipher and buffer.
        """
        self._key.check_process()
        _check("step", step, STEP_LIMIT)
        _check("index", first, INDEX_LIMIT)
        counter = (step << 64 | first // 2).to_bytes(_BLOCK_BYTES, "big")
        # A fresh cipher would cost as much as the noise of a few thousand coordinates.
        self._counter.reset_nonce(counter)
        if first % 2:
            self._counter.update(bytes(8))
        self._current = _CounterStream(self, first)
        return self._current

    def continue_main(self, stream: _CounterStream, first: int, count: int) -> NDArray[np.uint64]:
        """Words `first`, ... of the current stream; for the stream's own use."""
        self._key.check_process()
        if stream is not self._current:
            raise RuntimeError("another stream of this source has been started since")
        # The 64-bit block counter must never carry into the step.
        _check("last index", first + count - 1, INDEX_LIMIT)
        self._main_scratch.reserve(count)
        return self._main_scratch.encrypt(self._counter, count)

    def aux(
        self, step: int, index: NDArray[np.int64], round_: int, n_rounds: int
    ) -> NDArray[np.uint64]:
        """Four words for `n_rounds` rounds of each index, shape (len(index) * n_rounds, 4).

        Row i * n_rounds + k belongs to index[i] and round `round_` + k. The next call overwrites
        the array.
        """
        self._key.check_process()
        _check("step", step, STEP_LIMIT)
        _check("round", round_, ROUND_LIMIT)
        _check("last round", round_ + n_rounds - 1, ROUND_LIMIT)
        _check("index", int(index.min()), INDEX_LIMIT)
        _check("index", int(index.max()), INDEX_LIMIT)
        n_words = _AUX_WORDS * len(index) * n_rounds
        scratch = self._aux_scratch
        scratch.reserve(n_words)
        blocks = scratch.plain_words[:n_words].reshape(len(index), n_rounds, 2, 2)
        blocks[..., 0] = index[:, None, None]
        blocks[..., 1] = _aux_fields(step, round_, n_rounds)
        return scratch.encrypt(self._aux, n_words).reshape(-1, _AUX_WORDS)

    def deep(self, step: int, index: int, round_: int, variable: int, word: int) -> int:
        """Further 64-bit word number `word` of one variable of one trial."""
        self._key.check_process()
        _check("step", step, STEP_LIMIT)
        _check("index", index, INDEX_LIMIT)
        _check("round", round_, ROUND_LIMIT)
        _check("variable", variable, VARIABLE_LIMIT)
        _check("word", word, WORD_LIMIT)
        fields = step << 32 | round_ << 16 | variable << 8 | word
        block = (fields << 64 | index).to_bytes(_BLOCK_BYTES, "little")
        return int.from_bytes(self._deep.update(block)[:8], "little")


class _Scratch:
    """Plain text and cipher text buffers, reused so that a block costs no allocation."""

    def __init__(self) -> None:
        self._plain = memoryview(b"")
        self._cipher = memoryview(b"")
        self.plain_words = np.empty(0, "<u8")
        self._words = np.empty(0, np.uint64)

    def reserve(self, count: int) -> None:
        """Make room for `count` words; a new plain text is all zeros."""
        if count <= len(self.plain_words):
            return
        self.plain_words = np.zeros(count, "<u8")
        self._plain = self.plain_words.data.cast("B")
        # update_into wants one byte less than a spare block.
        self._cipher = memoryview(bytearray(8 * count + _BLOCK_BYTES - 1))
        self._words = np.frombuffer(self._cipher, np.uint64, count)

    def encrypt(self, cipher: CipherContext, count: int) -> NDArray[np.uint64]:
        """Cipher text of the first `count` plain words, little-endian on every machine."""
        n_bytes = 8 * count
        cipher.update_into(self._plain[:n_bytes], self._cipher[: n_bytes + _BLOCK_BYTES - 1])
        words = self._words[:count]
        return words if sys.byteorder == "little" else words.byteswap(inplace=True)


class _CounterStream:
    """Key stream of AES-256-CTR from one word of one step onwards."""

    def __init__(self, source: BitSource, first: int) -> None:
        self._source = source
        self._next = first

    def take(self, count: int) -> NDArray[np.uint64]:
        """Next `count` words. The caller may overwrite them; the next call does."""
        words = self._source.continue_main(self, self._next, count)
        self._next += count
        return words


def load_cipher() -> None:
    """Load what makes the bits, so that its absence is found before a charge and not after."""
    _counter_cipher(bytes(_KEY_BYTES))
    _block_cipher(bytes(_KEY_BYTES))


def _counter_cipher(key: bytes) -> CipherContext:
    # Imported late: the accountant and the help text must not pay for OpenSSL.
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES(key), modes.CTR(bytes(_BLOCK_BYTES))).encryptor()


def _block_cipher(key: bytes) -> CipherContext:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    # A block cipher over distinct counters is the textbook pseudorandom function; no data is
    # encrypted here, which is where this mode would be wrong.
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor()


def _aux_fields(step: int, round_: int, n_rounds: int) -> NDArray[np.uint64]:
    """Second half of the aux counter, shape (n_rounds, 2): step, round and block of the pair."""
    fields = np.arange(2 * n_rounds, dtype=np.uint64).reshape(n_rounds, 2)
    # 2 k + half becomes k << 16 | half.
    fields = (fields >> np.uint64(1) << np.uint64(16)) | (fields & np.uint64(1))
    return fields + np.uint64(step << 32 | round_ << 16)


def _check(name: str, value: int, limit: int) -> None:
    if not 0 <= value < limit:
        raise ValueError(f"{name} {value} is outside 0 .. {limit - 1}")
