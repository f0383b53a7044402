"""Secrets reach neither the child, nor the answer, nor anything that is kept."""

from __future__ import annotations

from pathlib import Path

from hand_helpers import OpenRY

from openry.secretstore import SecretStore

SECRETS = {
    "OPENAI_API_KEY": "sk-test-AAAA1111",
    "GITHUB_TOKEN": "ghp_BBBB2222",
    "AWS_SECRET_ACCESS_KEY": "CCCC3333",
    "PGPASSWORD": "DDDD4444",
}


def _holding(folder: Path, secret: str) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if secret.encode() in path.read_bytes()]


def test_secrets_of_the_environment_are_withheld_and_masked(openry: OpenRY):
    """Planted in environment, argument, output and file: found nowhere (B23)."""
    for secret in SECRETS.values():
        (openry.cwd / "leak").write_text(f"{secret} " * 200_000)
        answer = openry("-c", f"env; echo {secret}; echo {secret} >&2; cat leak", env=SECRETS)

        assert secret not in answer["stdout"] + answer["stderr"]
        assert "***" in answer["stdout"]
        assert _holding(openry.home, secret) == []
    assert openry.rows()[0]["spill_path"]


def test_a_secret_that_colour_codes_interrupt_is_found(openry: OpenRY):
    """Folding joins what the colours parted; the joined secret is replaced."""
    answer = openry("-c", r"printf 'CCCC\033[0m3333\n'", env=SECRETS)

    assert answer["stdout"] == "***AWS_SECRET_ACCESS_KEY***\n"


def test_well_known_token_shapes_are_masked(openry: OpenRY):
    """No configuration needed for tokens whose form says what they are."""
    token = "ghp_" + "a1B2" * 9

    answer = openry("-c", f"echo token={token}, next")

    assert answer["stdout"] == "token=***GITHUB_TOKEN***, next\n"
    assert token not in openry.rows()[0]["command"]


def test_payloads_are_cleaned(openry: OpenRY):
    """What an agent reports is stored and shown without secrets."""
    done = openry.raw("--status", "failed", "--payload", '{"why": "CCCC3333"}', env=SECRETS)

    assert b"CCCC3333" not in done.stdout
    assert _holding(openry.home, "CCCC3333") == []


def test_what_was_given_to_keep_or_configured_is_taken_out_everywhere(openry: OpenRY):
    """By hand, in a refused call below a run, and where a kept output is looked into."""
    openry.home.mkdir(mode=0o700)
    (openry.home / "config.yaml").write_text("redact: {literals: [configured one]}\n")
    SecretStore(openry.home, keyring=None).set("GIVEN", "given to keep")
    line = "echo 'configured one'; echo 'given to keep'"
    (openry.cwd / "log.txt").write_text("given to keep\nconfigured one\n" * 50)

    by_hand = openry("-c", line)
    below = openry("-c", line, env={"OPENRY_RUN_ID": "run-9", "OPENRY_RUN_TOKEN": "x"})
    looked = openry.raw("output", "grep", "log.txt", "keep|one").stdout.decode()

    assert by_hand["stdout"] == "***CONFIGURED***\n***GIVEN***\n"
    assert below["exit_code"] == 126
    assert [row["command"] for row in openry.rows("command")] == [
        "echo '***CONFIGURED***'; echo '***GIVEN***'"
    ] * 2
    assert "***GIVEN***" in looked
    assert "given to keep" not in looked + str(below)
    assert _holding(openry.home, "configured one") == [openry.home / "config.yaml"]
