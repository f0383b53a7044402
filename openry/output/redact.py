"""Take secrets out of bytes and texts before anything is stored or answered.

Known values are replaced wherever they stand; well-known token shapes are looked for only in
chunks that hold their mark, so a flood without secrets costs a few `in` tests per chunk.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from re import Pattern

    from openry.config import Config

    #: A token's name, where in it its mark begins, what it looks like.
    _Shape = tuple[str, int, bytes]

_NOTHING: Mapping[str, str] = {}
_SECRET_WORDS = frozenset(
    "KEY TOKEN SECRET PASS PASSWORD PASSWD PASSPHRASE CREDENTIAL CREDENTIALS AUTH COOKIE"
    " DSN".split()
)
_SECRET_NAMES = frozenset("PGPASSWORD SSHPASS MYSQL_PWD APIKEY".split())
_MIN_SECRET = 6
#: What a token is made of. A token cut by the end of a read is held back until the next one.
_TOKEN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.+/=:@~%"
_IN_TOKEN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
_HOLD = 512
_WORD = rb"[A-Za-z0-9_-]"
_START = rb"(?<![A-Za-z0-9])"

#: Letters that tell kinds of one maker's tokens apart, or makers apart, become one: then one look
#: through a chunk finds the mark of several.
_FOLD = bytes.maketrans(b"osurfS_iy", b"pppppK-mn")
#: By mark after folding: name, where in the token the mark begins, what the token looks like.
#: All end in a run of `_TOKEN` characters, so one that reaches the end of a read may go on.
_SHAPES: dict[bytes, tuple[_Shape, ...]] = {
    b"hp-": (
        ("GITHUB_TOKEN", 1, rb"gh[pousr]_[A-Za-z0-9]{20,}"),
        ("HF_TOKEN", 0, _START + rb"hf_[A-Za-z0-9]{20,}"),
    ),
    b"pat-": (
        ("GITHUB_TOKEN", 7, rb"github_pat_[A-Za-z0-9_]{20,}"),
        ("GITLAB_TOKEN", 2, rb"glpat-" + _WORD + rb"{16,}"),
    ),
    b"npm-": (
        ("NPM_TOKEN", 0, _START + rb"npm_[A-Za-z0-9]{30,}"),
        ("PYPI_TOKEN", 1, rb"pypi-" + _WORD + rb"{40,}"),
    ),
    b"pk-": (("API_KEY", 0, _START + rb"[sr]k[-_]" + _WORD + rb"{20,}"),),
    b"xpx": (("SLACK_TOKEN", 0, rb"xox[abeoprs]-" + _WORD + rb"{10,}"),),
    b"AKIA": (("AWS_ACCESS_KEY", 0, _START + rb"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])"),),
    b"AIza": (("GOOGLE_API_KEY", 0, rb"AIza" + _WORD + rb"{30,}"),),
    b"enJ": (("JWT", 0, _START + rb"eyJ" + _WORD + rb"{8,}\.[A-Za-z0-9_.-]{10,}"),),
}
#: Which byte of a mark is the rarest in texts, where that is not the last.
_RAREST = {b"AKIA": 1, b"AIza": 2}
_URL_PASSWORD: tuple[_Shape, ...] = (("URL_PASSWORD", -3, rb"[^\s/:@]*:[^\s/@]+(?=@)"),)
_KEY_BEGIN, _KEY_END = b"-----BEGIN ", b"-----END "
_LONGEST_TITLE = 80


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name holds a secret.

    >>> [is_secret_name(n) for n in ("OPENAI_API_KEY", "PGPASSWORD", "PWD", "MONKEY", "KEYBOARD")]
    [True, True, False, False, False]
    """
    upper = name.upper()
    return upper in _SECRET_NAMES or not _SECRET_WORDS.isdisjoint(upper.split("_"))


class Redactor:
    """What is secret here. `stream()` cleans a stream of bytes, `text()` a whole text."""

    def __init__(
        self,
        secrets: Iterable[tuple[str, str]] = (),
        *,
        patterns: Iterable[str] = (),
        excepted: Iterable[str] = (),
    ) -> None:
        self.excepted = frozenset(excepted)
        known = {
            value.encode("utf-8", "surrogateescape"): name
            for name, value in secrets
            if len(value) >= _MIN_SECRET and name not in self.excepted
        }
        #: Longest first, so that a secret inside another one leaves nothing of the longer.
        self.literals = tuple(
            (secret, _mask(name))
            for secret, name in sorted(known.items(), key=lambda item: -len(item[0]))
        )
        self.patterns = tuple(patterns)
        self._compiled: dict[bytes, Pattern[bytes]] = {}

    @classmethod
    def from_environment(
        cls,
        *envs: Mapping[str, str],
        stored: Mapping[str, str] = _NOTHING,
        literals: Iterable[str] = (),
        patterns: Iterable[str] = (),
        excepted: Iterable[str] = (),
    ) -> Redactor:
        """Everything secret by name in `envs`, everything `stored`, and what is configured."""
        secrets = [(name, env[name]) for env in envs for name in env if is_secret_name(name)]
        secrets += [("CONFIGURED", literal) for literal in literals]
        secrets += stored.items()
        return cls(secrets, patterns=patterns, excepted=excepted)

    @classmethod
    def for_config(cls, config: Config, *envs: Mapping[str, str]) -> Redactor:
        """What is secret by the environment, by the settings, and because it was given to keep."""
        stored: Mapping[str, str] = _NOTHING
        if os.path.exists(f"{config.home_dir}/secrets.json"):
            from openry.secretstore import SecretStore

            stored = SecretStore(config.home_dir).values()
        return cls.from_environment(
            *envs,
            stored=stored,
            literals=config.redact,
            patterns=config.redact_patterns,
            excepted=config.redact_except,
        )

    def text(self, text: str) -> str:
        """`text` without secrets."""
        data = text.encode("utf-8", "surrogatepass")
        clean = self.whole(data)
        return text if clean == data else clean.decode("utf-8", "surrogatepass")

    def whole(self, data: bytes) -> bytes:
        """`data`, all that there is, without secrets."""
        stream = self.stream()
        return stream.feed(data) + stream.end()

    def stream(self) -> RedactingStream:
        return RedactingStream(self)

    def replace(self, data: bytes) -> tuple[bytes, bool]:
        """`data` without secrets, and whether a token reaches to its very end."""
        for secret, mask in self.literals:
            if secret in data:
                data = data.replace(secret, mask)
        found = self._tokens(data)
        if not found:
            return data, False
        parts, done = [], 0
        for start, end, mask in sorted(found):
            if start >= done:
                parts += [data[done:start], mask]
                done = end
        return b"".join([*parts, data[done:]]), done == len(data)

    def _tokens(self, data: bytes) -> list[tuple[int, int, bytes]]:
        """Where in `data` something looks like a token, and what to put there."""
        folded = data.translate(_FOLD)
        found = []
        for mark, shapes in _SHAPES.items():
            found += self._at_marks(data, folded, mark, shapes)
        if b"@" in data:
            found += self._at_marks(data, data, b"://", _URL_PASSWORD)
        for pattern in self.patterns:
            matches = self._regex(pattern.encode()).finditer(data)
            found += [(*match.span(), _mask("CONFIGURED")) for match in matches]
        return found

    def _at_marks(
        self, data: bytes, marked: bytes, mark: bytes, shapes: tuple[_Shape, ...]
    ) -> list[tuple[int, int, bytes]]:
        """Tokens of some shapes, looked for only where their mark stands."""
        found: list[tuple[int, int, bytes]] = []
        if mark[_RAREST.get(mark, -1)] not in marked:  # much faster than looking for all of it
            return found
        place = marked.find(mark)
        while place >= 0:
            token = self._token_at(data, place, shapes)
            if token:
                found.append(token)
            place = marked.find(mark, max(token[1] if token else 0, place + 1))
        return found

    def _token_at(
        self, data: bytes, place: int, shapes: tuple[_Shape, ...]
    ) -> tuple[int, int, bytes] | None:
        """The token whose mark stands at `place`, if it is one."""
        for name, before, look in shapes:
            if place >= before and name not in self.excepted:
                match = self._regex(look).match(data, place - before)
                if match:
                    return (*match.span(), _mask(name))
        return None

    def _regex(self, look: bytes) -> Pattern[bytes]:
        import re

        if look not in self._compiled:
            self._compiled[look] = re.compile(look)
        return self._compiled[look]

    def begun_at_end(self, data: bytes) -> int:
        """How many bytes at the end of `data` may be the beginning of something secret."""
        held = 0
        for secret, _ in self.literals:
            held = max(held, _begun(secret, data))
        tail = data[-_HOLD:]
        in_token = len(tail) - len(tail.rstrip(_TOKEN))
        return max(held, in_token, _begun(_KEY_BEGIN, data), _begun(_KEY_END, data), _title(data))


class RedactingStream:
    """Redaction over reads: what might go on in the next read is held back until it came."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""
        self._in_token = False
        #: What must still come until the private key we are in is over, first things first.
        self._key_goes_on: tuple[bytes, ...] = ()

    def feed(self, chunk: bytes) -> bytes:
        if self._in_token:  # its beginning was replaced already
            chunk = chunk.lstrip(_IN_TOKEN)
        if not chunk:
            return b""
        clean, self._in_token = self._redactor.replace(self._held + chunk)
        held = 0 if self._in_token else self._redactor.begun_at_end(clean)
        done = len(clean) - held
        self._held = clean[done:]
        return self._without_keys(clean[:done])

    def end(self) -> bytes:
        last, self._held = self._held, b""
        return self._without_keys(last)

    def _without_keys(self, data: bytes) -> bytes:
        """`data` without private keys in PEM form; they may span many reads."""
        parts = []
        while data:
            if self._key_goes_on:
                _, found, data = data.partition(self._key_goes_on[0])
                if found:
                    self._key_goes_on = self._key_goes_on[1:]
                continue
            before, begin, after = data.partition(_KEY_BEGIN)
            parts.append(before)
            data = after
            if b"PRIVATE KEY" in after[:_LONGEST_TITLE]:
                parts.append(_mask("PRIVATE_KEY"))
                self._key_goes_on = (b"-----", _KEY_END, b"-----")
            else:
                parts.append(begin)
        return b"".join(parts)


def _mask(name: str) -> bytes:
    return f"***{name}***".encode()


def _title(data: bytes) -> int:
    """How many bytes at the end of `data` are a title of PEM that does not yet say of what."""
    place = data.rfind(_KEY_BEGIN, max(0, len(data) - _LONGEST_TITLE))
    return len(data) - place if place >= 0 and b"\n" not in data[place:] else 0


def _begun(secret: bytes, data: bytes) -> int:
    """Length of the longest proper beginning of `secret` that `data` ends with.

    >>> _begun(b"abcabd", b"xxabcab")
    5
    """
    first, place = secret[:1], max(0, len(data) - len(secret) + 1)
    while (place := data.find(first, place)) >= 0:
        if secret.startswith(data[place:]):
            return len(data) - place
        place += 1
    return 0
