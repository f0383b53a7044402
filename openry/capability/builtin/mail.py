"""The `mail` pack: messages of a maildir, an mbox or single .eml files; drafts; IMAP and SMTP.

Mail on disk is only read. What goes over the network takes its password from the environment, so
that it stands neither in a call nor in the log.
"""

# Importing pathlib costs more than most calls take.
# ruff: noqa: PTH103, PTH112, PTH113, PTH116, PTH118, PTH119, PTH208

from __future__ import annotations

import email.policy
import os
import re
import stat
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, date, datetime
from email.message import EmailMessage
from email.parser import BytesHeaderParser, BytesParser
from email.utils import getaddresses, parsedate_to_datetime
from typing import Any

from openry.capability.builtin.failure import ToolFailure, note
from openry.capability.builtin.lines import json_line
from openry.capability.builtin.runner import replace_file

_LONGEST = 32 * 1024 * 1024
_TEXT_CHARS = 200_000
_POLICY = email.policy.default.clone(refold_source="none")
_FROM_LINE = re.compile(rb"From \S+.*\d{4}\r?$")
_ADDRESS = re.compile(r"[^\s@<>,;:\"()\[\]\\]+@[^\s@<>,;:\"()\[\]\\]+")
_WAIT_S = 30
Raw = tuple[str, bytes, bool]


# --- looking ------------------------------------------------------------------------------


def list_mail(
    path: str,
    count: int,
    unread: bool,
    sender: str | None = None,
    to: str | None = None,
    subject: str | None = None,
    text: str | None = None,
    since: str | None = None,
    until: str | None = None,
) -> bytes:
    """Messages that meet every condition, newest first, as JSON."""
    wanted = {"from": sender, "to": to, "subject": subject}
    first, last = _day(since), _day(until)
    found = []
    for identity, content, is_new in _messages(path):
        if unread and not is_new:
            continue
        about = _about(identity, content, is_new)
        day = str(about["date"] or "")[:10]
        if (first and day < first) or (last and (not day or day > last)):
            continue
        if all(_has(about[key], value) for key, value in wanted.items() if value) and (
            not text or _has(_body(_parsed(content)), text)
        ):
            found.append(about)
    found.sort(key=lambda each: (_moment(each["date"]), str(each["id"])), reverse=True)
    return json_line(found[:count])


def read_mail(path: str, id: str | None = None) -> bytes:
    """One message as JSON: headers, text, names of attachments."""
    identity, content, is_new = _one(path, id)
    message = _parsed(content)
    body = _body(message)
    if len(body) > _TEXT_CHARS:
        note(f"the text has {len(body)} characters; the first {_TEXT_CHARS} are shown")
    told = _about(identity, content, is_new)
    told |= {
        "cc": _addresses(message, "cc"),
        "message_id": _header(message, "message-id"),
        "text": body[:_TEXT_CHARS],
        "attachments": [{"name": name, "bytes": len(data)} for name, data in _attached(message)],
    }
    return json_line(told)


def save_attachments(
    path: str, output: str, overwrite: bool, id: str | None = None, name: str | None = None
) -> bytes:
    """Write a message's attachments into a folder, under the last part of their names only."""
    import fnmatch

    message = _parsed(_one(path, id)[1])
    saved: list[str] = []
    for told, data in _attached(message):
        if name and not fnmatch.fnmatchcase(told, name):
            continue
        plain = re.sub(r"[\x00-\x1f\x7f/\\:]", "_", told).lstrip(".")[:200] or "attachment"
        place = os.path.join(output, plain)
        if (os.path.lexists(place) and not overwrite) or place in saved:
            raise ToolFailure("conflict", f"`{place}` exists; give another folder or `overwrite`")
        replace_file(place, [data])
        saved.append(place)
    if not saved:
        raise ToolFailure("not_found", "the message has no such attachment")
    return os.fsencode("\n".join(saved)) + b"\n"


def _has(value: object, wanted: str) -> bool:
    held = " ".join(value) if isinstance(value, list) else str(value)
    return wanted.casefold() in held.casefold()


def _about(identity: str, content: bytes, is_new: bool) -> dict[str, Any]:
    message = BytesHeaderParser(policy=_POLICY).parsebytes(content)
    return {
        "id": identity,
        "date": _date(message),
        "from": ", ".join(_addresses(message, "from")),
        "to": _addresses(message, "to"),
        "subject": _header(message, "subject"),
        "unread": is_new,
    }


def _header(message: Any, name: str) -> str:
    """A header as text; a broken one as it stands."""
    try:
        value = message.get(name)
    except Exception:  # the email package raises all kinds on broken headers
        value = next((v for k, v in message.raw_items() if k.lower() == name), "")
    return " ".join(str(value or "").encode("utf-8", "replace").decode().split())


def _addresses(message: Any, name: str) -> list[str]:
    pairs = getaddresses([_header(message, name)])
    return [f"{who} <{where}>" if who else where for who, where in pairs if where]


def _date(message: Any) -> str | None:
    try:
        when = parsedate_to_datetime(_header(message, "date"))
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return when.replace(tzinfo=when.tzinfo or UTC).isoformat()


def _moment(text: str | None) -> float:
    try:
        return datetime.fromisoformat(text).timestamp() if text else 0.0
    except (ValueError, OverflowError):
        return 0.0


def _day(text: str | None) -> str:
    if not text:
        return ""
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ToolFailure("bad_arguments", f"`{text}` is no day; write it as 2026-01-31") from None


def _parsed(content: bytes) -> EmailMessage:
    try:
        return BytesParser(policy=_POLICY).parsebytes(content)
    except Exception as error:  # the email package raises all kinds on broken mail
        raise ToolFailure("bad_arguments", f"the message cannot be read: {error}") from None


def _body(message: EmailMessage) -> str:
    """The text a person reads: the plain part, else the HTML one without its tags."""
    try:
        part = message.get_body(preferencelist=("plain", "html"))
        if part is None:
            return ""
        text = str(part.get_content())
    except Exception:  # broken encodings and unknown charsets
        payload = message.get_payload(decode=True)
        return payload.decode("utf-8", "replace") if isinstance(payload, bytes) else ""
    clean = text if part.get_content_subtype() != "html" else _without_tags(text)
    return clean.encode("utf-8", "replace").decode()


def _without_tags(text: str) -> str:
    import html

    bare = re.sub(r"(?is)<(script|style)\b.*?(</\1>|\Z)", " ", text)
    bare = re.sub(r"(?i)<(?:br|/p|/div|/tr|/h\d)\b[^>]*>", "\n", bare)
    lines = html.unescape(re.sub(r"<[^>]*>", " ", bare)).splitlines()
    return "\n".join(filter(None, (" ".join(line.split()) for line in lines))) + "\n"


def _attached(message: EmailMessage) -> Iterator[tuple[str, bytes]]:
    for number, part in enumerate(message.walk(), 1):
        name = part.get_filename()
        if part.is_multipart() or (part.get_content_disposition() != "attachment" and not name):
            continue
        data = part.get_payload(decode=True)
        yield name or f"part-{number}", data if isinstance(data, bytes) else b""


# --- where messages are -------------------------------------------------------------------


def _one(path: str, identity: str | None) -> Raw:
    """The message of that id, or the only one of a file."""
    if identity is not None:
        for raw in _messages(path):
            if raw[0] == identity:
                return raw
        raise ToolFailure("not_found", f"`{path}` has no message `{identity}`; see `list_mail`")
    first = [raw for raw, _ in zip(_messages(path), range(2), strict=False)]
    if len(first) == 1 and os.path.isfile(path):
        return first[0]
    held = "several messages" if first else "no message"
    raise ToolFailure("bad_arguments", f"`{path}` holds {held}; give `id`, see `list_mail`")


def _messages(path: str) -> Iterator[Raw]:
    """(id, content, whether it is unread) of every message; links are not followed."""
    if not os.path.lexists(path):
        raise ToolFailure("not_found", f"`{path}`: no such file")
    if os.path.isdir(path):
        yield from _maildir(path)
        return
    with open(path, "rb") as file:
        head = file.read(5)
    if head == b"From ":
        yield from _mbox(path)
    else:
        yield "1", _content(path), False


def _maildir(path: str) -> Iterator[Raw]:
    parts = [part for part in ("new", "cur") if os.path.isdir(os.path.join(path, part))]
    loose = [] if parts else [each for each in os.listdir(path) if each.endswith(".eml")]
    if not parts and not loose:
        raise ToolFailure(
            "bad_arguments", f"`{path}` is no maildir: it has neither `new` nor `cur`"
        )
    for part in parts or ("",):
        for name in sorted(loose or os.listdir(os.path.join(path, part))):
            place = os.path.join(path, part, name)
            if name.startswith(".") or not stat.S_ISREG(os.lstat(place).st_mode):
                continue
            flags = name.rpartition(":2,")[2] if ":2," in name else ""
            is_new = part == "new" or (part == "cur" and "S" not in flags)
            yield name.partition(":2,")[0], _content(place), is_new


def _content(place: str) -> bytes:
    size = os.stat(place).st_size
    if size > _LONGEST:
        raise ToolFailure("resource", f"`{place}` has {size} bytes; a message may have 32 MiB")
    with open(place, "rb") as file:
        return file.read(_LONGEST)


def _mbox(path: str) -> Iterator[Raw]:
    """Messages by number, from 1. `>From` in a text is `From`, as the form has it."""
    lines: list[bytes] = []
    number, size, blank = 0, 0, True
    with open(path, "rb") as file:
        for line in file:
            if blank and _FROM_LINE.match(line):
                if number:
                    yield _from_mbox(number, lines)
                number, lines, size = number + 1, [], 0
            else:
                size += len(line)
                if size > _LONGEST:
                    raise ToolFailure("resource", f"message {number} is larger than 32 MiB")
                lines.append(line[1:] if re.match(rb">+From ", line) else line)
            blank = line in (b"\n", b"\r\n")
    if number:
        yield _from_mbox(number, lines)


def _from_mbox(number: int, lines: list[bytes]) -> Raw:
    content = b"".join(lines).removesuffix(b"\n")
    head = content.partition(b"\n\n")[0]
    status = re.search(rb"(?im)^Status:\s*(\w*)", head)
    return str(number), content, status is not None and b"R" not in status[1].upper()


# --- writing ------------------------------------------------------------------------------


def draft_mail(
    output: str,
    to: list[str],
    subject: str,
    text: str,
    cc: list[str],
    attachments: list[str],
    overwrite: bool,
    sender: str | None = None,
    reply_to: str | None = None,
) -> bytes:
    """An .eml file that a mail program opens as a draft; nothing is sent."""
    if os.path.lexists(output) and not overwrite:
        raise ToolFailure("conflict", f"`{output}` exists; give another name or `overwrite`")
    message = EmailMessage(policy=email.policy.SMTP)
    message["To"] = ", ".join(map(_checked_address, to))
    if cc:
        message["Cc"] = ", ".join(map(_checked_address, cc))
    if sender:
        message["From"] = _checked_address(sender)
    if re.search(r"[\r\n\0]", subject):
        raise ToolFailure("bad_arguments", "`subject` must be one line")
    message["Subject"] = subject
    message["X-Unsent"] = "1"
    if reply_to:
        _answering(message, reply_to)
    message.set_content(text if text.endswith("\n") else f"{text}\n")
    for path in attachments:
        _attach(message, path)
    replace_file(output, [message.as_bytes()])
    return os.fsencode(f"draft to {message['To']} in {output}\n")


def _answering(message: EmailMessage, path: str) -> None:
    before = _parsed(_one(path, None)[1])
    identity = _header(before, "message-id")
    if re.fullmatch(r"<[^<>\s]+>", identity):
        message["In-Reply-To"] = identity
        message["References"] = identity


def _checked_address(text: str) -> str:
    """`ann@example.com` or `Ann <ann@example.com>`, one line."""
    from email.headerregistry import Address

    pairs = getaddresses([text])
    name, where = pairs[0] if len(pairs) == 1 else ("", "")
    if re.search(r"[\r\n\0]", text) or not _ADDRESS.fullmatch(where):
        raise ToolFailure("bad_arguments", f"`{text}` is no address of a person")
    try:
        return str(Address(name, addr_spec=where))
    except Exception:  # the parser raises all kinds
        raise ToolFailure("bad_arguments", f"`{text}` is no address of a person") from None


def _attach(message: EmailMessage, path: str) -> None:
    import mimetypes

    kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
    main, _, sub = kind.partition("/")
    message.add_attachment(
        _content(path), maintype=main, subtype=sub, filename=os.path.basename(path)
    )


# --- over the network ---------------------------------------------------------------------


def fetch_mail(
    host: str, port: int, user: str, password_env: str, folder: str, output: str, count: int,
    unread: bool, encryption: str, since: str | None = None,
) -> bytes:  # fmt: skip
    """Copy the newest messages of an IMAP folder into a maildir; nothing changes on the server."""
    import imaplib

    password, day = _password(password_env), _day(since)
    imaplib._MAXLINE = _LONGEST  # type: ignore[attr-defined]
    try:
        with _imap(host, port, encryption) as server:
            _logged_in(server, user, password, password_env)
            _done(server.select(_quoted(folder), readonly=True), f"folder `{folder}`")
            wanted = ["UNSEEN"] if unread else ["ALL"]
            wanted += ["SINCE", f"{date.fromisoformat(day):%d-%b-%Y}"] if day else []
            told = _done(server.uid("search", *wanted), "the search")
            numbers = sorted((int(each) for each in (told[0] or b"").split()), reverse=True)[:count]
            saved = sum(_save(server, number, host, output) for number in numbers)
    except imaplib.IMAP4.error as error:
        raise ToolFailure("internal", f"{host} said: {error}") from None
    except OSError as error:
        raise _unreachable(error, host) from None
    return os.fsencode(f"{saved} new of {len(numbers)} messages to {output}\n")


def _imap(host: str, port: int, encryption: str) -> Any:
    import imaplib
    import ssl

    if encryption == "tls":
        context = ssl.create_default_context()
        return imaplib.IMAP4_SSL(host, port, ssl_context=context, timeout=_WAIT_S)
    server = imaplib.IMAP4(host, port, timeout=_WAIT_S)
    if encryption == "starttls":
        server.starttls(ssl.create_default_context())
    return server


def _logged_in(server: Any, user: str, password: str, name: str) -> None:
    import imaplib

    try:
        server.login(user, password)
    except (imaplib.IMAP4.error, UnicodeEncodeError):
        raise ToolFailure(
            "auth", f"`{user}` was not let in; is {name} the right password?"
        ) from None


def _done(answer: tuple[str, Any], what: str) -> Any:
    kind, data = answer
    if kind != "OK":
        said = data[0].decode("utf-8", "replace") if data and isinstance(data[0], bytes) else kind
        raise ToolFailure("not_found", f"{what}: {said}")
    return data


def _quoted(folder: str) -> str:
    if re.search(r"[\r\n\0]", folder) or not folder.isascii():
        raise ToolFailure("bad_arguments", "`folder` must be a name of plain letters")
    return '"' + folder.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _save(server: Any, number: int, host: str, output: str) -> bool:
    """Whether the message was not there before."""
    for part in ("tmp", "new", "cur"):
        os.makedirs(os.path.join(output, part), exist_ok=True)
    name = f"{number}.{re.sub(r'[^A-Za-z0-9.-]', '_', host)}"
    there = [each for part in ("new", "cur") for each in os.listdir(os.path.join(output, part))]
    if any(each.partition(":2,")[0] == name for each in there):
        return False
    told = _done(server.uid("fetch", str(number), "(BODY.PEEK[])"), f"message {number}")
    content = next((each[1] for each in told if isinstance(each, tuple)), b"")
    replace_file(os.path.join(output, "new", name), [content])
    return True


def send_mail(
    path: str, host: str, port: int, password_env: str, encryption: str, user: str | None = None
) -> bytes:
    """Send one .eml file as it stands."""
    import smtplib

    message = _parsed(_one(path, None)[1])
    del message["X-Unsent"]
    receivers = [where for name in ("to", "cc", "bcc") for where in _only_addresses(message, name)]
    if not receivers or not _only_addresses(message, "from"):
        raise ToolFailure("bad_arguments", f"`{path}` must say From and To")
    password = _password(password_env) if user else ""
    try:
        with closing(_smtp(host, port, encryption)) as server:
            if user:
                server.login(user, password)
            refused = server.send_message(message)
            with suppress(smtplib.SMTPException, OSError):  # it is sent, however they part
                server.quit()
    except smtplib.SMTPAuthenticationError:
        raise ToolFailure(
            "auth", f"`{user}` was not let in; is {password_env} the right password?"
        ) from None
    except smtplib.SMTPRecipientsRefused as error:
        raise ToolFailure(
            "bad_arguments", f"no receiver was taken: {', '.join(error.recipients)}"
        ) from None
    except smtplib.SMTPException as error:
        raise ToolFailure("refused", f"{host} did not take it: {error}") from None
    except OSError as error:
        raise _unreachable(error, host) from None
    if refused:
        note(f"not taken: {', '.join(refused)}")
    return f"sent to {', '.join(each for each in receivers if each not in refused)}\n".encode()


def _smtp(host: str, port: int, encryption: str) -> Any:
    import smtplib
    import ssl

    if encryption == "tls":
        return smtplib.SMTP_SSL(host, port, timeout=_WAIT_S, context=ssl.create_default_context())
    server = smtplib.SMTP(host, port, timeout=_WAIT_S)
    if encryption == "starttls":
        server.starttls(context=ssl.create_default_context())
    return server


def _only_addresses(message: Any, name: str) -> list[str]:
    return [where for _, where in getaddresses([_header(message, name)]) if where]


def _password(name: str) -> str:
    password = os.environ.get(name, "")
    if not password:
        raise ToolFailure(
            "auth",
            f"{name} is not set; keep it with `openry secret set {name}`; a step also names it in"
            f" `secrets: [{name}]`, `openry mcp` and `openry serve` get it by their environment",
        )
    return password


def _unreachable(error: OSError, host: str) -> ToolFailure:
    if isinstance(error, TimeoutError):
        return ToolFailure("timeout", f"`{host}` did not answer in {_WAIT_S} s")
    return ToolFailure("network", f"`{host}` could not be reached: {error.strerror or error}")
