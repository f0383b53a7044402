"""Ways out of a sandbox, for root and another user. Each act succeeds outside, as a control."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread

import pytest
from hand_helpers import as_user, need_bubblewrap, need_root, need_sandbox

from openry.config import load_config
from openry.errors import SandboxError, UsageError
from openry.forwarder import Hand
from openry.forwarder.files import OutputFile
from openry.ledger.fast import FastLedger
from openry.models import Command, RunContext, SandboxSpec
from openry.sandbox.below import Below
from openry.sandbox.guard import Guard, Name
from openry.sandbox.launcher import Launch
from openry.sandbox.libc import call
from openry.sandbox.real import RealFolder
from openry.sandbox.seal import Seal
from openry.sandbox.tree import Tree

pytestmark = pytest.mark.sandbox
MakeHand = Callable[..., Hand]

#: Python that raises when the act fails. It is given what is taken from `sys.argv` below.
ACTS = {
    "read a file outside": "open(outside + '/secret').read()",
    "read through a link": "os.symlink(outside + '/secret', 'l'); open('l').read()",
    "write a file outside": "open(outside + '/new', 'w').close(); check(outside + '/new')",
    "hard link to a file outside": "os.link(outside + '/secret', 'h')",
    "move a file out": "open('x', 'w'); os.rename('x', outside + '/x'); check(outside + '/x')",
    "write into /usr": "open('/usr/openry-test', 'w'); os.unlink('/usr/openry-test')",
    "see a process outside": "os.kill(pid, 0)",
    "read another process's memory": "open(f'/proc/{pid}/mem', 'rb').read(0)",
    "read another process's environment": "assert open(f'/proc/{pid}/environ', 'rb').read()",
    "change the kernel's settings": (
        "place = '/proc/sys/kernel/core_pattern'\n"
        "text = open(place).read(); open(place, 'w').write(text)"
    ),
    "trace": "call('ptrace', 0, 0, 0, 0)",
    "a user namespace": "call('unshare', 0x10000000)",
    "a user namespace by clone": "call('syscall', 56, 0x10000000 | 17, 0, 0, 0, 0) or os._exit(0)",
    "mount": "call('mount', b'none', b'/mnt', b'tmpfs', 0, None); call('umount2', b'/mnt', 2)",
    "io_uring": "call('syscall', 425, 1, ctypes.create_string_buffer(120))",
    "the kernel's keys": "call('syscall', 250, 0, -3, 0)",
    "a raw socket": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "a packet socket": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "a vsock": "socket.socket(40, socket.SOCK_STREAM)",
    "an abstract socket": "socket.socket(socket.AF_UNIX).connect('\\0' + abstract)",
    "a socket file": "os.chdir(outside); socket.socket(socket.AF_UNIX).connect('s')",
    "loopback": "socket.create_connection(('127.0.0.1', port), 2)",
    "an address of this host": "socket.create_connection((own, port), 2)",
    "ask a name server": (
        "one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); one.settimeout(2)\n"
        "one.sendto(b'?', ('127.0.0.1', names)); one.recv(9)"
    ),
    "a name of this host": "socket.create_connection(('localhost', port), 2)",
    "typing into a terminal": (
        "import pty, fcntl; pid, fd = pty.fork()\n"
        "if pid == 0: fcntl.ioctl(0, 0x5412, b'x'); os._exit(0)\n"
        "os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    ),
    "a device": "os.mknod('d', 0o600 | 0x2000, os.makedev(1, 1))",
    "a program that runs as its owner": (
        "open('su', 'w').close(); os.chmod('su', 0o4755)\nassert os.stat('su').st_mode & 0o4000"
    ),
    "such a program by opening": (
        "fd = os.open('su', os.O_CREAT | os.O_WRONLY, 0o4755)\nassert os.fstat(fd).st_mode & 0o4000"
    ),
    "such a program by a node": "os.mknod('su', 0o104755); assert os.stat('su').st_mode & 0o4000",
    "such a program by a descriptor": (
        "fd = os.open('su', os.O_CREAT | os.O_WRONLY); os.fchmod(fd, 0o4755)\n"
        "assert os.fstat(fd).st_mode & 0o4000"
    ),
    "rights for a program": (
        "open('c', 'w').close()\n"
        "os.setxattr('c', 'security.capability', b'\\1\\0\\0\\2' + b'\\xff' * 16)"
    ),
    "a file of somebody else": "open('o', 'w').close(); os.chown('o', 1, 1)",
    "limits of another process": (
        "import resource; of = resource.RLIMIT_CORE\n"
        "resource.prlimit(pid, of, resource.prlimit(pid, of))"
    ),
    "rank of another process": "os.setpriority(os.PRIO_PROCESS, pid, 0)",
    "processors of another process": "os.sched_setaffinity(pid, range(os.cpu_count()))",
    "memory shared by a key": "call('shmget', key, 0, 0)",
    "the clock": (
        "place = ctypes.create_string_buffer(208); call('adjtimex', place)\n"
        "place[0:4] = (16).to_bytes(4, sys.byteorder); call('adjtimex', place)"
    ),
    "settings of the network": (
        "import struct; one = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)\n"
        "one.bind((0, 0))\n"
        "said = struct.pack('BxHiIIHHI', 0, 0, 1, 0, 0, 8, 4, 65536)\n"
        "one.send(struct.pack('IHHII', 16 + len(said), 19, 5, 1, 0) + said)\n"
        "assert struct.unpack('i', one.recv(99)[16:20]) == (0,)"
    ),
}
#: What only root may do outside, or only some kernels can: no control run, then no test.
NOT_EVERYWHERE = {
    "write into /usr",
    "read another process's memory",
    "change the kernel's settings",
    "an address of this host",
    "a user namespace",
    "a user namespace by clone",
    "mount",
    "io_uring",
    "the kernel's keys",
    "a raw socket",
    "a packet socket",
    "a vsock",
    "typing into a terminal",
    "a device",
    "rights for a program",
    "a file of somebody else",
    "the clock",
    "settings of the network",
}
BEFORE = """
import ctypes, os, socket, sys
outside, pid, abstract, port, names, own, key = sys.argv[1:]
pid, port, names, key = int(pid), int(port), int(names), int(key)
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    answer = getattr(libc, name)(*arguments)
    if answer < 0:
        raise OSError(ctypes.get_errno(), name)
    return answer
def check(path):
    print("look", path)
"""


#: For whom the interpreter of the tests is closed.
PYTHONS = (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3")
NOBODY = 65534


@pytest.fixture
def place(migrated: Path) -> Iterator[Path]:
    """A folder that any user may enter, with a workspace, a home and a secret beside them."""
    with tempfile.TemporaryDirectory(prefix="openry-") as folder:
        made = Path(folder)
        made.chmod(0o755)
        (made / "ws").mkdir()
        (made / "home").mkdir(mode=0o700)
        shutil.copy(migrated, made / "home" / "openry.db")
        (made / "secret").write_text("x")
        yield made


@pytest.mark.parametrize("act", sorted(ACTS))
def test_no_way_out(place: Path, act: str, sandbox: str):
    """What is done outside cannot be done inside."""
    ((control, inside),) = tried(place, [act], sandbox)

    if not control and act in NOT_EVERYWHERE:
        pytest.skip(f"NOT TESTED: here nobody may do that outside either: {act}")
    assert control
    assert not inside


def test_no_way_out_for_another_user(place: Path, sandbox: str):
    """The same for somebody without root's rights; nothing is skipped that must work for him."""
    need_root()
    tried(place, ["loopback"], sandbox)
    for path in (place, *place.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    acts = sorted(ACTS)
    if sandbox == "landlock" and not as_user(NOBODY, lambda: os.access(sys.executable, os.X_OK)):
        pytest.skip(
            "NOT TESTED: another user cannot start this interpreter, nor what closes itself"
        )

    told = as_user(NOBODY, lambda: tried(place, acts, sandbox))

    outcomes = dict(zip(acts, told, strict=True))
    assert [act for act, (_, inside) in outcomes.items() if inside] == []
    failed = [act for act, (control, _) in outcomes.items() if not control]
    assert set(failed) <= NOT_EVERYWHERE, "these control runs failed"
    assert len(acts) - len(failed) >= 14


def tried(place: Path, acts: list[str], sandbox: str) -> list[tuple[bool, bool]]:
    """Whether each act succeeds without a sandbox, and in it."""
    config = load_config(place / "home", env={})
    workspace = place / "ws"
    python = next(path for path in PYTHONS if os.access(path, os.X_OK))
    abstract, here = f"openry-test-{os.getpid()}", Path.cwd()
    with (
        FastLedger(config.ledger) as ledger,
        socket.socket(socket.AF_UNIX) as by_file,
        socket.socket(socket.AF_UNIX) as by_name,
        socket.create_server(("0.0.0.0", 0)) as server,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as names,
        ExitStack() as stack,
    ):
        os.chdir(place)  # the path of a socket file must be short
        (place / "s").unlink(missing_ok=True)
        by_file.bind("s")
        by_name.bind(f"\0{abstract}")
        os.chdir(here)
        by_file.listen()
        by_name.listen()
        port = server.getsockname()[1]
        names.bind(("127.0.0.1", 0))
        stack.enter_context(_answering(names))
        ports = (str(port), str(names.getsockname()[1]))
        words = (str(place), str(os.getpid()), abstract, *ports, _own_address(), str(os.getpid()))
        shared = _shared_memory(os.getpid())
        hands = [
            Hand(ledger, RunContext(workspace=str(workspace), sandbox=spec), config)
            for spec in (SandboxSpec(), SandboxSpec(sandbox, (str(workspace),)))
        ]
        found = []
        for act in acts:
            (workspace / "act.py").write_text(BEFORE + ACTS[act] + "\n")
            control, inside = (_succeeds(hand, (python, "act.py", *words)) for hand in hands)
            found.append((control, inside))
        call("shmctl", shared, 0, 0)  # IPC_RMID
        return found


def _shared_memory(key: int) -> int:
    """A page of memory that every process of this host and user finds by its key."""
    return call("shmget", key, 4096, 0o1600)


@contextmanager
def _answering(names: socket.socket) -> Iterator[None]:
    """A name server that knows one answer. It is over before its socket is closed.

    Else its thread would read from whatever gets the same descriptor next.
    """

    def answer() -> None:
        while (heard := names.recvfrom(9))[0] != b"end":
            names.sendto(b"!", heard[1])

    thread = Thread(target=answer, daemon=True)
    thread.start()
    try:
        yield
    finally:
        names.sendto(b"end", names.getsockname())
        thread.join()


def _own_address() -> str:
    """An address of this host that is not a loopback one; an unreachable one where it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.connect(("192.0.2.1", 9))
            return str(one.getsockname()[0])
        except OSError:
            return "192.0.2.1"


def _succeeds(hand: Hand, argv: tuple[str, ...]) -> bool:
    """Whether the act was done: without an error, and with its effect where one was named."""
    workspace = Path(hand.context.workspace)
    before = {path.name for path in workspace.iterdir()}
    result = hand.forward(Command(stages=(argv,)))
    looked = [Path(line[5:]) for line in result.stdout.splitlines() if line.startswith("look ")]
    done = result.exit_code == 0 and all(path.exists() for path in looked)
    for path in [*looked, *(p for p in workspace.iterdir() if p.name not in before)]:
        path.unlink(missing_ok=True)
    return done


def test_a_sandbox_with_network_still_hides_everything_else(
    make_hand: MakeHand, tmp_path: Path, sandbox: str
):
    """Network is network, not the machine."""
    (tmp_path / "secret").write_text("x")
    workspace = make_hand().context.workspace
    hand = make_hand(sandbox=SandboxSpec(sandbox, (workspace,), network=True))

    assert hand.forward(Command(f"cat {tmp_path}/secret")).exit_code != 0
    assert hand.forward(Command("test -e /etc/resolv.conf || test ! -e /etc/resolv.conf")).ok
    assert hand.forward(Command("unshare -U true")).exit_code != 0


def test_a_workspace_behind_a_link_works(make_hand: MakeHand, tmp_path: Path):
    """The folder is named by its link, and meant itself."""
    need_bubblewrap()
    (tmp_path / "link").symlink_to(make_hand().context.workspace)
    link = str(tmp_path / "link")
    hand = make_hand(workspace=link, sandbox=SandboxSpec("bubblewrap", (link,)))

    assert hand.forward(Command("echo x > made && cat made")).stdout == "x\n"
    assert (tmp_path / "ws" / "made").exists()


def test_landlock_refuses_what_it_cannot_protect(make_hand: MakeHand, tmp_path: Path):
    """Hooks in a folder that may be written; a ledger in it: 125, and what would do."""
    need_sandbox("landlock")
    workspace = Path(make_hand().context.workspace)
    (workspace / ".git" / "hooks").mkdir(parents=True)
    hooks = make_hand("landlock").forward(Command("touch ran"))
    (workspace / ".git" / "hooks").rmdir()
    spec = SandboxSpec("landlock", (str(tmp_path),))
    ledger = make_hand(sandbox=spec).forward(Command("touch ran"))

    assert (hooks.exit_code, ledger.exit_code) == (125, 125)
    assert "cannot protect" in hooks.stderr
    assert "cannot hide" in ledger.stderr
    assert not (workspace / "ran").exists()


def test_the_program_of_the_sandbox_cannot_be_reached(make_hand: MakeHand):
    """By /proc/1/exe root would change the rights and times of the host's own bubblewrap."""
    need_bubblewrap()
    program = Path(str(shutil.which("bwrap")))
    before = program.stat()

    line = "chmod 755 /proc/1/exe; touch /proc/1/exe; ls /proc/1; cat /proc/1/environ"
    result = make_hand("bubblewrap").forward(Command(line))

    assert (result.exit_code, result.stdout) == (1, "cmdline\n")
    assert program.stat().st_ctime_ns == before.st_ctime_ns


@pytest.mark.parametrize("source", ["ws/mine", "other"])
def test_a_folder_that_became_a_link_meanwhile_is_not_shown(tmp_path: Path, source: str):
    """Another command of the workspace puts a link there while the mounts are made.

    bubblewrap then mounts what the link leads to, as it is told to here; nothing may be run then.
    """
    need_bubblewrap()
    for name in ("ws/mine", "other"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a").write_text(name)
    mine = str(tmp_path / "ws/mine")
    seal, (status, status_write) = Seal([mine]), os.pipe()
    argv = (
        str(shutil.which("bwrap")), "--unshare-all", "--die-with-parent",
        "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib",
        "--symlink", "usr/lib64", "/lib64",
        "--bind", str(tmp_path / source), mine, "--file", str(seal.fd), "/sealed",
        "--json-status-fd", str(status_write), "--",
        "/bin/sh", "-c", f"cat {mine}/a; echo x >{mine}/b",
    )  # fmt: skip
    launch = Launch(argv, "/", (seal.fd, status_write), status, seal=seal)
    read, write = os.pipe()
    nothing = os.open(os.devnull, os.O_RDWR)
    tree = Tree("", confined=True, alone=False)
    refused = ""
    try:
        tree.start(launch, {"PATH": os.defpath}, (nothing, write, nothing))
        tree.processes[0].reap()
    except SandboxError as error:
        refused = str(error)
    finally:
        for fd in (*launch.pass_fds, write, nothing):
            os.close(fd)
        tree.close()
    with open(read) as file:
        said = file.read()

    if source == "other":
        assert (said, refused) == ("", f"`{mine}` became another folder meanwhile; try again")
        assert not (tmp_path / "other/b").exists()
    else:
        assert (said, refused) == ("ws/mine", "")


def test_what_is_put_away_is_not_looked_for_behind_a_link(make_hand: MakeHand, tmp_path: Path):
    """A command that is not over yet puts a link to a person's folder where its own one was."""
    workspace = Path(make_hand().context.workspace)
    theirs = tmp_path / "theirs/.git/hooks"
    theirs.mkdir(parents=True)
    below = Below([str(workspace)])
    (workspace / "new/.git/hooks").mkdir(parents=True)
    (made,) = below.made()
    (workspace / "new").rename(workspace / "old")
    (workspace / "new").symlink_to(tmp_path / "theirs")

    class Late:
        def made(self) -> tuple[Name, ...]:
            return (made,)

        def close_again(self) -> None: ...

    guard = Guard((), Late())
    assert "new/.git" in guard.settle(str(tmp_path / "away"))
    guard.close()

    assert theirs.is_dir()
    assert not (tmp_path / "away").exists()


def test_a_tools_output_is_not_written_behind_a_link(tmp_path: Path):
    """Nor is a folder made there, when another command puts a link on the way meanwhile."""
    for name in ("ws/a", "other"):
        (tmp_path / name).mkdir(parents=True)
    path = str(tmp_path / "ws/a/b")
    (tmp_path / "ws/a").rename(tmp_path / "ws/was")
    (tmp_path / "ws/a").symlink_to(tmp_path / "other")

    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        RealFolder(path, makes=True)
    with pytest.raises(UsageError, match="is outside the folders"):
        OutputFile("a/b/out", str(tmp_path / "ws"), (str(tmp_path / "ws"),))

    assert list((tmp_path / "other").iterdir()) == []
    OutputFile("was/b/out", str(tmp_path / "ws"), (str(tmp_path / "ws"),)).close(keep=True)
    assert (tmp_path / "ws/was/b/out").is_file()
