"""The filter on system calls, as the kernel takes it: what no command of ours needs is closed.

Made here rather than by libseccomp: it is a list of comparisons. x86-64 and aarch64; on another
machine there is none, and `program` says so. The numbers are the kernel's own, never changed.
"""

from __future__ import annotations

import os
import struct
from functools import cache

_ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "arm64": 0xC00000B7}

#: Names and numbers on x86-64 and aarch64. Refused as if the caller were not allowed to.
_NOT_PERMITTED: dict[str, tuple[int, int]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}
#: Refused as if the kernel did not have them: programs then take the older way.
_NOT_THERE: dict[str, tuple[int, int]] = {
    "clone3": (435, 435),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "openat2": (437, 437),  # its mode lies where no filter can look
}
#: What namespaces close; refused where there are none: memory and queues shared by a key.
_SHARED: dict[str, tuple[int, int]] = {
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "semget": (64, 190),
    "shmat": (30, 196),
    "shmget": (29, 194),
}
#: There, too: what changes another process. By which argument says whose, where 0 is the caller;
#: and which value of the first one says that a single process is meant, where there is such.
_OF_OTHERS: dict[str, tuple[tuple[int, int], int, int | None]] = {
    "ioprio_set": ((251, 30), 1, 1),
    "prlimit64": ((302, 261), 0, None),
    "sched_setaffinity": ((203, 122), 0, None),
    "sched_setattr": ((314, 274), 0, None),
    "sched_setparam": ((142, 118), 0, None),
    "sched_setscheduler": ((144, 119), 0, None),
    "setpriority": ((141, 140), 1, 0),
}
#: A program that runs as its owner, left behind, would be a way out for whoever starts it. By which
#: argument is the mode, and which one must say that a file is made; 0 numbers are of no call.
_MODES: dict[str, tuple[tuple[int, int], int, int | None]] = {
    "chmod": ((90, 0), 1, None),
    "creat": ((85, 0), 1, None),
    "fchmod": ((91, 52), 1, None),
    "fchmodat": ((268, 53), 2, None),
    "fchmodat2": ((452, 452), 2, None),
    "mknod": ((133, 0), 1, None),
    "mknodat": ((259, 33), 2, None),
    "open": ((2, 0), 2, 1),
    "openat": ((257, 56), 3, 2),
}
_SET_USER, _SET_GROUP = 0o4000, 0o2000
_MAKES = 0x40 | 0x400000  #: O_CREAT, O_TMPFILE
_X86_ONLY = {"ioperm": 173, "iopl": 172}
_CLONE, _SOCKET, _IOCTL = (56, 220), (41, 198), (16, 29)
_NEW_NAMESPACES = (
    0x7E020080  #: CLONE_NEWUSER, NEWNS, NEWPID, NEWNET, NEWIPC, NEWUTS, NEWCGROUP, NEWTIME
)
#: Families of sockets: AF_UNIX, AF_INET, AF_INET6, AF_NETLINK.
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
_TERMINAL_INJECTION = (0x5412, 0x541C)  #: TIOCSTI, TIOCLINUX

_LOAD, _EQUAL, _ABOVE, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _ARGUMENT_0, _ARGUMENT_1 = 0, 4, 16, 24
_ARGUMENT_SIZE = 8
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_X32 = 0x40000000


@cache
def program(
    machine: str = "",
    *,
    families: tuple[int, ...] = (UNIX, INET, INET6, NETLINK),
    namespaces: bool = True,
) -> bytes:
    """The compiled filter for `machine` (this one by default); empty where there is none.

    Args:
        families: Sockets that may be made. Where there are namespaces, those close the rest.
        namespaces: Whether there are some for processes and what they share.
    """
    machine = machine or os.uname().machine
    if machine not in _ARCHES:
        return b""
    x86 = machine == "x86_64"
    column = 0 if x86 else 1
    steps = [_step(_LOAD, _ARCH), *_unless(_ARCHES[machine], _KILL), _step(_LOAD, _NUMBER)]
    if x86:  # another numbering of the same calls, for which nothing below would hold
        steps += [_step(_ABOVE, _X32, 0, 1), _step(_RETURN, _ERRNO | _ENOSYS)]
    for _, numbers in sorted(_NOT_PERMITTED.items()):
        steps += _refused(numbers[column], _EPERM)
    for number in _X86_ONLY.values() if x86 else ():
        steps += _refused(number, _EPERM)
    for _, numbers in sorted(_NOT_THERE.items()):
        steps += _refused(numbers[column], _ENOSYS)
    steps += _kept_modes(column)
    if not namespaces:
        for _, numbers in sorted(_SHARED.items()):
            steps += _refused(numbers[column], _EPERM)
        for _, (numbers, place, single) in sorted(_OF_OTHERS.items()):
            one = _only(0, single) if single is not None else []
            steps += _only_when(numbers[column], [*one, *_only(place, 0), _step(_RETURN, _ALLOW)])
    steps += _only_when(
        _CLONE[column],
        [
            _step(_LOAD, _ARGUMENT_0),
            _step(_ANY_BIT, _NEW_NAMESPACES, 0, 1),
            _step(_RETURN, _ERRNO | _EPERM),
            _step(_RETURN, _ALLOW),
        ],
    )
    sockets = [_step(_EQUAL, family, len(families) - at) for at, family in enumerate(families)]
    steps += _only_when(
        _SOCKET[column],
        [
            _step(_LOAD, _ARGUMENT_0),
            *sockets,
            _step(_RETURN, _ERRNO | _EAFNOSUPPORT),
            _step(_RETURN, _ALLOW),
        ],
    )
    steps += _only_when(
        _IOCTL[column],
        [
            _step(_LOAD, _ARGUMENT_1),
            *(part for request in _TERMINAL_INJECTION for part in _refused(request, _EPERM)),
            _step(_RETURN, _ALLOW),
        ],
    )
    return b"".join([*steps, _step(_RETURN, _ALLOW)])


def _kept_modes(column: int) -> list[bytes]:
    """No file becomes one that runs as its owner; nor, for root, as its group.

    In a folder of a group others get that bit from the folder, and copying sets it again.
    """
    mask = _SET_USER | (_SET_GROUP if os.geteuid() == 0 else 0)
    steps: list[bytes] = []
    for numbers, mode, flags in _MODES.values():
        if not numbers[column]:
            continue
        refused = [
            _step(_LOAD, _argument(mode)),
            _step(_ANY_BIT, mask, 0, 1),
            _step(_RETURN, _ERRNO | _EPERM),
            _step(_RETURN, _ALLOW),
        ]
        if flags is not None:
            made = [_step(_LOAD, _argument(flags)), _step(_ANY_BIT, _MAKES, 1, 0)]
            refused = [*made, _step(_RETURN, _ALLOW), *refused]
        steps += _only_when(numbers[column], refused)
    return steps


def _only(place: int, value: int) -> list[bytes]:
    """Refused unless that argument is `value`."""
    return [
        _step(_LOAD, _argument(place)),
        _step(_EQUAL, value, 1, 0),
        _step(_RETURN, _ERRNO | _EPERM),
    ]


def _argument(place: int) -> int:
    """Where the lower half of an argument lies."""
    return _ARGUMENT_0 + _ARGUMENT_SIZE * place


def _step(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, operand)


def _refused(value: int, errno: int) -> list[bytes]:
    return [_step(_EQUAL, value, 0, 1), _step(_RETURN, _ERRNO | errno)]


def _unless(value: int, verdict: int) -> list[bytes]:
    return [_step(_EQUAL, value, 1, 0), _step(_RETURN, verdict)]


def _only_when(number: int, steps: list[bytes]) -> list[bytes]:
    return [_step(_EQUAL, number, 0, len(steps)), *steps]
