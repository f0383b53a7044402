"""Dying by SIGKILL at a chosen transition of the engine, for tests of what survives it."""

from __future__ import annotations

import os
import signal
import threading
import traceback
from contextlib import contextmanager

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
