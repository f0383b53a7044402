"""What a command is given: a shell, a small environment, a folder for its temporary files."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openry.sandbox.watch import Watch

#: Passed on from our own environment; nothing else is.
_PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME")
_SET = {
    "TERM": "dumb",
    "CI": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
}
_OURS_ALLOWED = frozenset({"OPENRY_IDEMPOTENCY_KEY", "OPENRY_WORKSPACE"})
_SHELLS = {
    "darwin": (("/bin/zsh", "-c"), ("/bin/bash", "-c")),
    "win32": (("pwsh", "-NoProfile", "-NonInteractive", "-Command"), ("cmd.exe", "/d", "/s", "/c")),
}
_UNIX_SHELLS = (("/bin/sh", "-c"), ("/bin/bash", "-c"))
#: What stands before the text, for shells that are not like `sh`; by name, without `.exe`.
_OPTIONS = {
    "pwsh": _SHELLS["win32"][0][1:],
    "powershell": _SHELLS["win32"][0][1:],
    "cmd": _SHELLS["win32"][1][1:],
}


def build_environment(own: Mapping[str, str], *given: Mapping[str, str]) -> dict[str, str]:
    """The command's environment: an allow-list of ours, then what the run and the call set.

    >>> env = build_environment({"PATH": "/bin", "API_KEY": "x"}, {"OPENRY_DB": "y", "A": "1"})
    >>> env["PATH"], "API_KEY" in env, "OPENRY_DB" in env, env["A"], env["TERM"]
    ('/bin', False, False, '1', 'dumb')
    """
    env = {name: own[name] for name in _PASSED if name in own}
    env.setdefault("PATH", os.defpath)
    env.setdefault("LANG", "C.UTF-8")
    env |= _SET
    for more in given:
        env.update(more)
    return {
        name: text
        for name, text in env.items()
        if not name.startswith("OPENRY_") or name in _OURS_ALLOWED
    }


def shell_argv(
    configured: str, *, platform: str = sys.platform, is_there: Callable[[str], bool] | None = None
) -> tuple[str, ...]:
    """The shell and the options before the command text.

    >>> shell_argv("/opt/dash"), shell_argv("", platform="linux", is_there=lambda path: True)
    (('/opt/dash', '-c'), ('/bin/sh', '-c'))
    >>> shell_argv(r"C:\\Windows\\System32\\cmd.exe")[1:]
    ('/d', '/s', '/c')
    """
    if configured:
        name = configured.replace("\\", "/").rpartition("/")[2].lower().removesuffix(".exe")
        return configured, *_OPTIONS.get(name, ("-c",))
    choices = _SHELLS.get(platform, _UNIX_SHELLS)
    found = is_there or _is_there
    return next((argv for argv in choices if found(argv[0])), choices[-1])


def _is_there(program: str) -> bool:
    if os.path.isabs(program):
        return os.access(program, os.X_OK)
    return any(os.access(f"{folder}/{program}", os.X_OK) for folder in os.get_exec_path())


class TemporaryFolder:
    """A folder of one call's own, under a name that no other call has.

    Some disks take longer to remove a folder than a short command to run. So where many calls
    follow each other, one that no command touched gets another name and is the next call's, unless
    some process was left, which may have it open. The watch removes those that wait when we end.

    Args:
        base: Where it is made; if it cannot be there, in `/tmp`.

    Attributes:
        path: Empty when none can be made.
    """

    def __init__(self, base: str, *, alone: bool) -> None:
        self._base = base.rstrip("/") if _can_hold_folders(base) else "/tmp"  # noqa: S108
        self.path = f"{self._base}/openry-{os.urandom(6).hex()}"
        self._alone = alone
        try:
            if alone or not self._take():
                os.mkdir(self.path, 0o700)
            self._made = os.stat(self.path).st_ctime_ns
        except OSError:
            self.path = ""

    def close(self) -> None:
        if not self.path:
            return
        kept = not self._alone and self._is_untouched() and self._hand_on()
        if not kept:
            remove_folder(self.path)

    def _take(self) -> bool:
        """Whether there was one that waited."""
        from openry.sandbox.watch import watch

        try:
            path, keeper, line = _waiting[self._base].pop()
        except (KeyError, IndexError):
            return False
        if keeper is not watch(alone=False):
            if keeper.is_ours:  # it was killed, and removes nothing
                remove_folder(path)
            return False  # else it is our parent's, from before a `fork`
        try:
            os.rename(path, self.path)
        except OSError:
            return False
        finally:
            keeper.end(line)
        return True

    def _is_untouched(self) -> bool:
        try:
            about = os.stat(self.path)
            return (
                about.st_ctime_ns == self._made
                and about.st_mode & 0o7777 == 0o700
                and not os.listdir(self.path)
            )
        except OSError:
            return False

    def _hand_on(self) -> bool:
        """Whether it waits for the next call now."""
        from openry.sandbox.orphans import strangers
        from openry.sandbox.watch import watch

        others = _waiting.setdefault(self._base, [])
        if len(others) >= _MOST_WAITING:
            return False
        try:
            keeper = watch(alone=False)
            if strangers({keeper.pid, *keeper.groups}):
                return False
            others.append((self.path, keeper, keeper.leave(self.path)))
        except OSError:  # nobody could remove it
            return False
        return True


def _can_hold_folders(base: str) -> bool:
    """Also whether a line of the watch's table, by which processes are found again, can name it."""
    return os.path.isabs(base) and base.isprintable() and os.access(base, os.W_OK | os.X_OK)


#: Folders that wait for a call, by the one they are in: each with who removes it, and by which
#: number that one knows it.
_waiting: dict[str, list[tuple[str, Watch, int]]] = {}
_MOST_WAITING = 16


def remove_folder(path: str) -> None:
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return
    except OSError:
        import shutil

        shutil.rmtree(path, ignore_errors=True)
