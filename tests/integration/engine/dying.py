"""Dying by SIGKILL at a chosen transition of the engine, for tests of what survives it."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
import traceback
from contextlib import closing, contextmanager

from openry.ledger import db, fast
from openry.sandbox import process, tree


def in_child(work):
    """Do `work` in a process of its own; its number."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return pid


def wait(pid):
    _, status = os.waitpid(pid, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


#: A step that ends once there is a file `go`: until then it is surely under way.
STUCK = (
    "{name: x, sub_steps: [{id: a, kind: shell, command:"
    " 'echo a >> marks; until test -e go; do sleep 0.02; done'}STEPS]}"
)


def stop_between_transactions(pid, ledger):
    """Stop a process while it does not hold the ledger, which nobody else could write then."""
    while True:
        os.kill(pid, signal.SIGSTOP)
        with closing(sqlite3.connect(ledger, timeout=0.3, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError:
                os.kill(pid, signal.SIGCONT)
        time.sleep(0.01)


@contextmanager
def dying_at(point):
    """SIGKILL ourselves at the `point`-th boundary: before and after each commit, and before and
    after each start and each end of a process. Gives how many there were, for who lives.
    """
    seen = 0
    counting = threading.Lock()

    def boundary():
        nonlocal seen
        with counting:
            seen += 1
            if seen == point:
                os.kill(os.getpid(), signal.SIGKILL)

    real = (db.Ledger._transaction, fast.FastLedger._write, tree.start, process.Process.reap)

    @contextmanager
    def transaction(self, *, writing, **how):
        with real[0](self, writing=writing, **how) as connection:
            yield connection
            if writing:
                boundary()
        if writing:
            boundary()

    def write(self, work, **how):
        def then_die(connection):
            done = work(connection)
            boundary()
            return done

        done = real[1](self, then_die, **how)
        boundary()
        return done

    def start(*args, **kwargs):
        boundary()
        started = real[2](*args, **kwargs)
        boundary()
        return started

    def reap(self):
        ended = self.exit_code is None
        if ended:
            boundary()
        code = real[3](self)
        if ended:
            boundary()
        return code

    db.Ledger._transaction, fast.FastLedger._write = transaction, write
    tree.start, process.Process.reap = start, reap
    try:
        yield lambda: seen
    finally:
        db.Ledger._transaction, fast.FastLedger._write, tree.start, process.Process.reap = real
