"""Mail as it lies on disk, drafts, and small IMAP and SMTP servers that note what they hear."""

from __future__ import annotations

import email.policy
import json
import mailbox
import os
import socketserver
import threading
from collections.abc import Iterator
from email.message import EmailMessage
from email.parser import BytesParser
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openry.capability import complete, dry_run, load_registry
from openry.capability.builtin.failure import ToolFailure
from openry.capability.builtin.runner import load
from openry.errors import BadArgumentsError

REGISTRY = load_registry()


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(name: str, **arguments) -> bytes:
    tool = REGISTRY.get(name)
    return load(tool.python or "")(**complete(tool, arguments))


def listed(path: str, **arguments) -> list[dict]:
    return json.loads(run("list_mail", path=path, **arguments))


def message(subject: str, text: str = "hello\n", **headers: str) -> EmailMessage:
    made = EmailMessage()
    made["Subject"] = subject
    for name, value in ({"From": "ann@example.com", "To": "bo@example.com"} | headers).items():
        made[name.replace("_", "-")] = value
    made.set_content(text)
    return made


TEXTS = st.lists(
    st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), max_size=60), max_size=5
).map("\n".join)
SUBJECTS = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=40)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(SUBJECTS, TEXTS), min_size=1, max_size=4), st.booleans())
def test_what_python_wrote_is_read(here: Path, mails: list, as_maildir: bool):
    """Maildirs and mbox files of the standard library: every subject and text comes back."""
    place = here / f"box{len(list(here.iterdir()))}"
    box = mailbox.Maildir(place) if as_maildir else mailbox.mbox(place)
    for number, (subject, text) in enumerate(mails):
        box.add(message(subject, f"{text}\n", Date=f"Mon, 12 Jan 2026 09:00:{number:02} +0000"))
    box.close()

    told = listed(place.name)
    read = [json.loads(run("read_mail", path=place.name, id=each["id"])) for each in told]

    assert [each["subject"] for each in read] == [subject for subject, _ in reversed(mails)]
    for each, (_, text) in zip(read, reversed(mails), strict=True):
        assert each["text"].replace("\r", "").rstrip("\n") == text.replace("\r", "").rstrip("\n")
        assert (each["from"], each["to"]) == ("ann@example.com", ["bo@example.com"])


def test_conditions_are_all_met(here: Path):
    """By sender, receiver, subject, text, day and unread, in capitals or not."""
    box = mailbox.mbox(here / "box")
    box.add(message("Lunch", "soup\n", Date="Mon, 12 Jan 2026 09:00:00 +0000"))
    box.add(message("Bill", "pay\n", From="Shop <s@x.org>", Date="Tue, 03 Feb 2026 08:00:00 +0000"))
    box.add(message("No date", "none\n", To="cy@example.com"))
    box.close()

    def subjects(**conditions) -> list[str]:
        return [each["subject"] for each in listed("box", **conditions)]

    assert subjects() == ["Bill", "Lunch", "No date"]
    assert subjects(sender="SHOP") == ["Bill"]
    assert subjects(to="cy@") == ["No date"]
    assert subjects(subject="lun", text="SOUP") == ["Lunch"]
    assert subjects(since="2026-02-01") == ["Bill"]
    assert subjects(until="2026-01-31") == ["Lunch"]
    assert subjects(text="soup", sender="shop") == []
    assert subjects(count=1) == ["Bill"]


@given(st.binary(max_size=400))
def test_no_bytes_make_reading_fail(content: bytes):
    """Whatever is in a mailbox is a message, a sentence, or nothing."""
    for start in (b"", b"From a Mon Jan 12 09:00:00 2026\n", b"Content-Type: multipart/mixed\n\n"):
        Path("any").write_bytes(start + content)
        for name in ("list_mail", "read_mail"):
            try:
                json.loads(run(name, path="any"))
            except ToolFailure as failure:
                assert failure.error_class in ("bad_arguments", "not_found")


@pytest.mark.parametrize(
    "header",
    [
        "Subject: =?nonsense?q?=FF?=", "Date: yesterday", "To: <<>>,,", "From: \xff\xfe",
        "Content-Type: text/plain; charset=nonsense", "Content-Transfer-Encoding: base64",
        "Content-Type: multipart/mixed; boundary=", "Date: Mon, 99 Jan 99999 99:99:99 +9999",
    ],
)  # fmt: skip
def test_broken_headers_are_shown_as_they_are(header: str):
    """A message with one is still listed and read."""
    Path("m.eml").write_bytes(f"{header}\nX: y\n\nbody =\n".encode("latin-1"))

    assert len(listed("m.eml")) == 1
    assert json.loads(run("read_mail", path="m.eml"))["id"] == "1"


def test_html_is_shown_as_text(here: Path):
    """Without tags, scripts and styles."""
    made = EmailMessage()
    made.set_content("<style>p{}</style><p>A &amp; B</p><script>x()</script>C", subtype="html")
    Path("m.eml").write_bytes(made.as_bytes())

    assert json.loads(run("read_mail", path="m.eml"))["text"] == "A & B\nC\n"


def test_links_in_a_maildir_are_not_followed(here: Path):
    """A stranger's folder shows nothing of what lies outside."""
    (here / "out.eml").write_text("Subject: secret\n\nx\n")
    (here / "ws/new").mkdir(parents=True)
    (here / "ws/new/1").symlink_to(here / "out.eml")

    assert listed("ws") == []


@pytest.mark.parametrize("name", ["../../evil", "/etc/evil", "..", ".bashrc", "a\\..\\b", "a\nb"])
def test_an_attachment_is_saved_under_a_plain_name(here: Path, name: str):
    """In the folder that was named, whatever the sender called it."""
    made = message("x")
    made.add_attachment(b"data", maintype="a", subtype="b", filename="PLACE")
    Path("m.eml").write_bytes(made.as_bytes().replace(b"PLACE", name.replace("\n", "%0A").encode()))
    (here / "ws").mkdir()

    saved = run("save_attachments", path="m.eml", output="ws/in").decode().splitlines()

    assert [Path(each).read_bytes() for each in saved] == [b"data"]
    inside = [path for path in here.rglob("*") if path.is_file() and path.name != "m.eml"]
    assert [path.parent for path in inside] == [here / "ws/in"]
    assert not inside[0].name.startswith(".")


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(SUBJECTS, TEXTS)
def test_a_draft_says_what_was_given(subject: str, text: str):
    """Read by the standard library: receivers, subject, text, attachment, and a mark as unsent."""
    Path("f.bin").write_bytes(b"\0\1")
    run("draft_mail", output="d.eml", to=["Ann Lee <ann@example.com>"], cc=["bo@example.com"],
        subject=subject, text=text, attachments=["f.bin"], overwrite=True)  # fmt: skip

    made = BytesParser(policy=email.policy.default).parsebytes(Path("d.eml").read_bytes())
    body = made.get_body(("plain",))

    assert (made["Subject"], made["To"], made["Cc"]) == (
        subject, "Ann Lee <ann@example.com>", "bo@example.com",
    )  # fmt: skip
    assert body is not None
    assert (
        body.get_content().splitlines()
        == (text if text.endswith("\n") else f"{text}\n").splitlines()
    )
    assert [part.get_content() for part in made.iter_attachments()] == [b"\0\1"]
    assert made["X-Unsent"] == "1"


@pytest.mark.parametrize(
    "arguments",
    [
        {"to": ["a@b\r\nBcc: evil@x.org"]}, {"to": ["nobody"]}, {"to": []}, {"to": ["a@b, c@d"]},
        {"subject": "x\r\nBcc: evil@x.org"}, {"sender": "a\nb@c"}, {"cc": ["<>"]},
    ],
)  # fmt: skip
def test_no_header_is_smuggled_in(here: Path, arguments: dict):
    """Receivers and subject are one line each, and addresses are addresses."""
    whole = {"output": "d.eml", "to": ["a@b.org"], "subject": "s", "text": "t"} | arguments

    with pytest.raises((ToolFailure, BadArgumentsError)):
        run("draft_mail", **whole)
    assert not list(here.iterdir())


# --- servers ------------------------------------------------------------------------------


class Imap(socketserver.StreamRequestHandler):
    """Two messages in INBOX, for `bo` with `secret`. Everything heard is kept."""

    mails = (b"Subject: one\r\n\r\nfirst\r\n", b"Subject: two\r\n\r\nsecond\r\n")
    heard: list[str]

    def handle(self) -> None:
        self.say("* OK ready")
        for line in self.rfile:
            tag, _, rest = line.decode().strip().partition(" ")
            type(self).heard.append(rest)
            word = rest.upper().replace("UID ", "").split()[0]
            getattr(self, f"on_{word.lower()}", self.on_other)(rest)
            ok = "NO" if word == "LOGIN" and '"secret"' not in rest else "OK"
            ok = "NO" if word == "EXAMINE" and "INBOX" not in rest else ok
            self.say(f"{tag} {ok} done")
            if word == "LOGOUT":
                return

    def on_capability(self, _: str) -> None:
        self.say("* CAPABILITY IMAP4REV1")

    def on_examine(self, _: str) -> None:
        self.say("* 2 EXISTS")

    def on_search(self, _: str) -> None:
        self.say("* SEARCH 1 2")

    def on_fetch(self, rest: str) -> None:
        mail = self.mails[int(rest.split()[2]) - 1]
        self.wfile.write(f"* 1 FETCH (BODY[] {{{len(mail)}}}\r\n".encode() + mail + b")\r\n")

    def on_other(self, _: str) -> None:
        """Nothing but OK."""

    def say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


class Smtp(socketserver.StreamRequestHandler):
    """Takes what is for example.com, and keeps it."""

    heard: list[str]

    def handle(self) -> None:
        self.say("220 ready")
        for line in self.rfile:
            text = line.decode().strip()
            type(self).heard.append(text)
            if text.upper() == "DATA":
                self.say("354 go on")
                while (part := self.rfile.readline()) not in (b".\r\n", b""):
                    type(self).heard.append(part.decode().rstrip("\r\n"))
            bad = text.upper().startswith("RCPT")
            self.say("550 no such person" if bad and "example.com" not in text else "250 OK")
            if text.upper() == "QUIT":
                return

    def say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@pytest.fixture
def serve() -> Iterator:
    servers = []

    def serve(handler: type) -> int:
        handler.heard = []
        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # A client that has gone is no error of the test.
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        servers.append(server)
        return server.server_address[1]

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_mail_is_fetched_and_nothing_changes_there(here: Path, serve, monkeypatch):
    """Each message once, however often it is fetched; the folder is opened for reading only."""
    monkeypatch.setenv("MAIL_PASSWORD", "secret")
    about = {"host": "127.0.0.1", "port": serve(Imap), "user": "bo", "encryption": "none"}

    first = run("fetch_mail", output="box", **about)
    second = run("fetch_mail", output="box", **about, unread=True, since="2026-01-31")

    assert (first, second) == (b"2 new of 2 messages to box\n", b"0 new of 2 messages to box\n")
    assert sorted(each["subject"] for each in listed("box")) == ["one", "two"]
    words = [line.split()[0] if line[:3] != "UID" else line.split()[1] for line in Imap.heard]
    assert not {"STORE", "EXPUNGE", "SELECT", "APPEND", "DELETE"} & {w.upper() for w in words}
    assert "BODY.PEEK[]" in " ".join(Imap.heard)
    assert "UID SEARCH UNSEEN SINCE 31-Jan-2026" in Imap.heard


@pytest.mark.parametrize(
    ("password", "more", "error_class"),
    [
        ("", {}, "auth"), ("wrong", {}, "auth"), ("secret", {"folder": "Nowhere"}, "not_found"),
        ("secret", {"port": 1}, "network"), ("secret", {"folder": 'a"\r\nx'}, "bad_arguments"),
    ],
)  # fmt: skip
def test_what_keeps_mail_from_coming_has_its_class(
    here, serve, monkeypatch, password, more, error_class
):
    """No password, a wrong one, no such folder, nobody there; the password is in no message."""
    monkeypatch.setenv("MAIL_PASSWORD", password)
    about = {"host": "127.0.0.1", "port": serve(Imap), "user": "bo", "encryption": "none"}

    with pytest.raises(ToolFailure) as failure:
        run("fetch_mail", output="box", **(about | more))

    assert failure.value.error_class == error_class
    assert not password or password not in str(failure.value)


def test_a_draft_is_sent_as_it_stands(serve):
    """To every receiver, without the mark of a draft; who is not taken is told."""
    run("draft_mail", output="d.eml", to=["ann@example.com"], cc=["bo@example.com"],
        sender="cy@example.com", subject="Hi", text=".dot\nbye")  # fmt: skip
    about = {"host": "127.0.0.1", "port": serve(Smtp), "encryption": "none"}

    assert run("send_mail", path="d.eml", **about) == b"sent to ann@example.com, bo@example.com\n"

    said = "\n".join(Smtp.heard)
    assert "X-Unsent" not in said
    assert "..dot\nbye" in said
    assert said.upper().count("RCPT TO:") == 2


def test_what_cannot_be_sent_is_said(serve):
    """No sender, no receiver that is taken: nothing is sent."""
    about = {"host": "127.0.0.1", "port": serve(Smtp), "encryption": "none"}
    run("draft_mail", output="d.eml", to=["x@other.org"], subject="Hi", text="x")
    with pytest.raises(ToolFailure, match="must say From and To"):
        run("send_mail", path="d.eml", **about)
    run(
        "draft_mail",
        output="e.eml",
        to=["x@other.org"],
        sender="a@example.com",
        subject="",
        text="x",
    )
    with pytest.raises(ToolFailure, match=r"no receiver was taken: x@other.org"):
        run("send_mail", path="e.eml", **about)
    assert "DATA" not in [line.upper() for line in Smtp.heard]


def test_sending_asks_a_person():
    """It is irreversible, never repeated by itself, and offered as such."""
    tool = REGISTRY.get("send_mail")

    assert (tool.requires_confirmation, tool.side_effects) == (True, "irreversible")
    assert not tool.may_repeat({})
    plan = dry_run(tool, {"path": "d.eml", "host": "smtp.example.com"}, Path.cwd())
    assert (plan.reads, plan.writes, plan.network) == (("d.eml",), (), True)
    assert os.environ.get("MAIL_PASSWORD") is None
