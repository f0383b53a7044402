"""What is known of programs: each is described once."""

from __future__ import annotations

from collections import Counter

from openry.policy import profiles


def test_each_program_is_described_once_and_found_by_its_name():
    """Whatever name a program is described under, its profile is found, and there is but one."""
    described = [
        (name, file) for file, _ in profiles._files() for name in profiles._described(file)
    ]

    assert [
        name for name, times in Counter(name for name, _ in described).items() if times > 1
    ] == []
    for name, file in described:
        own, given = profiles._described(file)[name]
        assert profiles.profile_of(name) == profiles._profile(own, given, file), name
        assert profiles.profile_of(name).known


def test_what_is_not_described_is_not_known():
    """A name that no file describes has an empty profile, also where the word occurs in one."""
    names = ("no-such-program", "wrapper", "texts", "--help", "", ".", "*", "[a", ".shared", "(")

    assert [name for name in names if profiles.profile_of(name).known] == ["."]
