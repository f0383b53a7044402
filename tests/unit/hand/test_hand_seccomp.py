"""The filter says what the kernel's own headers mean."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from openry.sandbox import seccomp

HEADERS = {
    0: Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    1: Path("/usr/include/asm-generic/unistd.h"),
}
ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def _verdict(
    machine: str,
    number: int,
    *arguments: int,
    arch: int | None = None,
    families: tuple[int, ...] = (1, 2, 10, 16),
    namespaces: bool = True,
) -> int:
    """Run the filter as the kernel would."""
    code = seccomp.program(machine, families=families, namespaces=namespaces)
    steps = [struct.unpack("=HBBI", code[i : i + 8]) for i in range(0, len(code), 8)]
    words = {0: number, 4: ARCH[machine] if arch is None else arch}
    words |= {16 + 8 * at: argument for at, argument in enumerate(arguments)}
    at = value = 0
    while True:
        op, if_true, if_false, operand = steps[at]
        at += 1
        if op == 0x20:
            value = words.get(operand, 0)
        elif op == 0x06:
            return operand
        else:
            holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}
            at += if_true if holds[op] else if_false


@pytest.mark.parametrize("column", [0, 1])
def test_numbers_are_the_kernels(column: int):
    """Every name stands in the header with the number used here."""
    if not HEADERS[column].exists():
        pytest.skip("no kernel headers on this machine")
    text = HEADERS[column].read_text()
    found = dict(re.findall(r"#define __NR3?2?6?4?_?(?:3264_)?(\w+)\s+(\d+)", text))
    table = seccomp._NOT_PERMITTED | seccomp._NOT_THERE
    table |= seccomp._SHARED
    table |= {name: each[0] for name, each in (seccomp._OF_OTHERS | seccomp._MODES).items()}
    table |= {"clone": seccomp._CLONE, "socket": seccomp._SOCKET, "ioctl": seccomp._IOCTL}

    wrong = {
        name: (numbers[column], found.get(name))
        for name, numbers in table.items()
        if numbers[column] and found.get(name, str(numbers[column])) != str(numbers[column])
    }
    assert wrong == {}
    assert len(set(table) & set(found)) > 30


@pytest.mark.parametrize(("machine", "column"), [("x86_64", 0), ("aarch64", 1)])
def test_what_is_closed_is_closed_and_the_rest_open(machine: str, column: int):
    """EPERM for what needs a power, ENOSYS for what has an older way, allowed otherwise."""
    for numbers in seccomp._NOT_PERMITTED.values():
        assert _verdict(machine, numbers[column]) == 0x50001
    for numbers in seccomp._NOT_THERE.values():
        assert _verdict(machine, numbers[column]) == 0x50026
    closed = {numbers[column] for numbers in (seccomp._NOT_PERMITTED | seccomp._NOT_THERE).values()}
    special = {seccomp._CLONE[column], seccomp._SOCKET[column], seccomp._IOCTL[column]}
    x86_only = set(seccomp._X86_ONLY.values()) if machine == "x86_64" else set()
    for number in set(range(470)) - closed - special - x86_only:
        assert _verdict(machine, number) == 0x7FFF0000


@pytest.mark.parametrize(("machine", "column"), [("x86_64", 0), ("aarch64", 1)])
def test_arguments_are_looked_at_where_they_matter(machine: str, column: int):
    """Threads yes, namespaces no; the common sockets yes, others no; no typing into terminals."""
    clone, socket, ioctl = seccomp._CLONE[column], seccomp._SOCKET[column], seccomp._IOCTL[column]

    assert _verdict(machine, clone, 0x3D0F00) == 0x7FFF0000
    for flag in (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x08000000, 0x04000000, 0x02000000):
        assert _verdict(machine, clone, flag | 17) == 0x50001
    assert [_verdict(machine, socket, family) for family in (1, 2, 10, 16)] == [0x7FFF0000] * 4
    closed = [_verdict(machine, socket, family, families=(16,)) for family in (16, 1, 2, 10)]
    assert closed == [0x7FFF0000] + [0x50061] * 3
    assert [_verdict(machine, socket, family) for family in (17, 40, 38, 31)] == [0x50061] * 4
    assert _verdict(machine, ioctl, 0, 0x5401) == 0x7FFF0000
    assert _verdict(machine, ioctl, 0, 0x5412) == 0x50001


def test_another_numbering_of_calls_is_no_way_round():
    """32-bit calls kill, x32 ones are not there."""
    assert _verdict("x86_64", 20, arch=0x40000003) == 0x80000000
    assert _verdict("x86_64", 0x40000000 + 1) == 0x50026


def test_other_machines_have_no_filter():
    """Nothing wrong is loaded there."""
    assert seccomp.program("riscv64") == b""


@pytest.mark.parametrize(("machine", "column"), [("x86_64", 0), ("aarch64", 1)])
def test_no_file_becomes_one_that_runs_as_its_owner(machine: str, column: int):
    """Whichever call gives the mode; where a file is not made, what stands there is no mode."""
    for name, (numbers, mode, flags) in seccomp._MODES.items():
        if not numbers[column]:
            continue
        given = [0, 0, 0, 0]
        given[mode] = 0o4755
        if flags is not None:
            assert _verdict(machine, numbers[column], *given) == 0x7FFF0000, name
            for makes in (0x40, 0x410000):
                given[flags] = makes
                assert _verdict(machine, numbers[column], *given) == 0x50001, name
            given[flags] = 0x40
        assert _verdict(machine, numbers[column], *given) == 0x50001, name
        given[mode] = 0o1755
        assert _verdict(machine, numbers[column], *given) == 0x7FFF0000, name


@pytest.mark.parametrize(("machine", "column"), [("x86_64", 0), ("aarch64", 1)])
def test_without_namespaces_nobody_else_is_changed(machine: str, column: int):
    """Oneself may be; not a process by its number, nor all of a user's."""
    for numbers in seccomp._SHARED.values():
        assert _verdict(machine, numbers[column], namespaces=False) == 0x50001
        assert _verdict(machine, numbers[column]) == 0x7FFF0000
    for name, (numbers, place, single) in seccomp._OF_OTHERS.items():
        given = [0, 0, 0]
        if single is not None:
            given[0] = single
        assert _verdict(machine, numbers[column], *given, namespaces=False) == 0x7FFF0000, name
        if single is not None:
            given[0] = single + 2  # all of a user
            assert _verdict(machine, numbers[column], *given, namespaces=False) == 0x50001, name
            given[0] = single
        given[place] = 4711
        assert _verdict(machine, numbers[column], *given, namespaces=False) == 0x50001, name
        assert _verdict(machine, numbers[column], *given) == 0x7FFF0000, name
