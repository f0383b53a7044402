"""Embeddings: shape, figures against the published ones, and a clear word when weights lack."""

import subprocess
import sys

import pytest

from openry.errors import ModelError, UsageError
from openry.llm.embed import open_embedder
from openry.llm.weights import installed_file

pytestmark = pytest.mark.model


@pytest.fixture(params=["english", "multilingual"])
def embedder(request):
    return open_embedder(request.param)


def test_minilm_gives_the_published_similarities():
    """The three sentences of the library's own first example come out as it prints them."""
    rows = open_embedder("english").embed(
        ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    )

    close = rows @ rows.T

    assert close[0, 1] == pytest.approx(0.6660, abs=1e-4)
    assert close[0, 2] == pytest.approx(0.1046, abs=1e-4)
    assert close[1, 2] == pytest.approx(0.1411, abs=1e-4)


def test_the_multilingual_one_knows_chinese():
    """A Chinese sentence is nearest to the English one that says the same."""
    rows = open_embedder("multilingual").embed(
        ["统计文件中的行数", "count the lines in a file", "delete a column", "sort the names"]
    )

    assert (rows[0] @ rows[1:].T).argmax() == 0


def test_rows_are_unit_vectors_in_the_order_asked(embedder):
    """Each row has length 1, and a text has the same row wherever it stands."""
    texts = ["sort", "", "x " * 9000, "sort", "a b c d e f g"]

    rows = embedder.embed(texts)

    assert rows.shape == (5, embedder.dimensions)
    assert (rows**2).sum(axis=1) == pytest.approx(1, abs=1e-5)
    assert (rows[0] == rows[3]).all()
    assert (embedder.embed(["a b c d e f g"])[0] == rows[4]).all()


def test_no_texts_give_no_rows(embedder):
    """An empty question is an empty matrix of the right width."""
    assert embedder.embed([]).shape == (0, embedder.dimensions)


def test_an_embedder_is_loaded_once():
    """Whoever asks gets the one that is loaded."""
    assert open_embedder("english") is open_embedder("english")


def test_an_unknown_language_is_named():
    """A wrong name is answered with the right ones."""
    with pytest.raises(UsageError, match="`english` or `multilingual`"):
        open_embedder("latin")


@pytest.mark.parametrize("parts", [("no_such_package_here", "x"), ("openry", "llm", "*.gguf")])
def test_missing_weights_say_how_to_get_them(parts):
    """No package, or a package without the file: one sentence with the command that helps."""
    with pytest.raises(ModelError, match=r"not installed: run `make setup`") as caught:
        installed_file(*parts)

    assert caught.value.code == "no_weights"


def test_importing_the_floor_loads_nothing_heavy():
    """`import openry.llm` and its embedder module bring neither numpy nor a model library."""
    script = (
        "import sys, openry.llm, openry.llm.embed\n"
        "heavy = {'numpy', 'litellm', 'xllamacpp', 'torch', 'pydantic', 'tokenizers', 'yaml',"
        " 'sqlalchemy', 'asyncio'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )

    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert out.stdout.strip() == "[]"
