"""Everything one call started: ended together, and by nobody's death left alive."""

from __future__ import annotations

import time

from openry.sandbox.process import KILL, TERM, Process, start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from openry.sandbox.cgroup import Group
    from openry.sandbox.guard import Guard
    from openry.sandbox.launcher import Launch
    from openry.sandbox.proxy import Decision, Proxy
    from openry.sandbox.watch import Watch

#: How long the kernel may take to tear a sandbox down once its first process was killed.
_LONGEST_S = 2.0
_TICK_S = 0.0003


class Tree:
    """The processes of a pipeline and all below them.

    A sandbox ends what is in it by itself. Without one, orphans are adopted and found by the mark
    in their environment, and a watch kills what is left should we be killed.

    Args:
        mark: The TMPDIR of this call, which no other call has; empty in a sandbox.
        alone: This process does nothing else: any orphan is of this call.
    """

    def __init__(self, mark: str, *, confined: bool, alone: bool) -> None:
        self.processes: list[Process] = []
        self.guards: list[Guard] = []
        self.groups: list[Group] = []
        self._mark = mark
        self._confined = confined
        self._alone = alone
        self._watched: list[tuple[Watch, int]] = []  #: who watches, and by which number
        self._helpers: list[Proxy] = []

    def start(
        self,
        launch: Launch,
        env: Mapping[str, str],
        std: tuple[int, int, int],
        more_fds: tuple[int, ...] = (),
    ) -> None:
        """Start one more program.

        Raises:
            OSError: It cannot be started.
            SandboxError: Its sandbox is not what was meant.
        """
        if launch.helper:
            self._helpers.append(launch.helper)
        if launch.guard:
            self.guards.append(launch.guard)
        if launch.group:
            self.groups.append(launch.group)
        keeper = None
        try:
            keeper = self._keeper()
            if keeper:
                self._watched.append((keeper, keeper.expect(self._mark)))
            process = start(launch, env, std=std, more_fds=more_fds, alone=self._alone)
        except BaseException:
            launch.forsake()
            raise
        process.status_fd = launch.status_fd
        self.processes.append(process)
        if keeper:
            keeper.begin(self._watched[-1][1], process.pid, self._mark)
        if launch.seal:
            launch.seal.check(process)

    def _keeper(self) -> Watch | None:
        """Who kills what is left of us; a sandbox does that by itself."""
        if self._confined:
            return None
        from openry.sandbox.orphans import adopt_orphans
        from openry.sandbox.watch import watch

        adopt_orphans()
        return watch(alone=self._alone)

    @property
    def decisions(self) -> list[Decision]:
        """What was decided about connections asked for."""
        return [decision for helper in self._helpers for decision in helper.decisions]

    def settle(self, folder: str) -> str:
        """Once all is over: put away what was made of protected names; which, or empty."""
        said = [guard.settle(folder) for guard in self.guards]
        for guard in self.guards:
            guard.close()
        self.guards = []
        return next(filter(None, said), "")

    def ask_to_end(self) -> None:
        for process in self.processes:
            process.signal_all(TERM)

    def kill(self) -> None:
        for process in self.processes:
            process.signal_group(KILL)

    def is_gone(self) -> bool:
        """Whether nobody is left in any group. Leaders that ended are reaped."""
        for process in self.processes:
            if process.has_ended():
                process.reap()
        return all(one.exit_code is not None and one.is_gone() for one in self.processes)

    def is_torn_down(self) -> bool:
        """Whether nobody is left, waiting for the kernel to end what was in a sandbox.

        Once the first process of a sandbox ended, the kernel kills the others by itself.
        """
        until = time.monotonic() + _LONGEST_S
        while not self.is_gone():
            if not self._confined or time.monotonic() > until:
                return False
            time.sleep(_TICK_S)
        return True

    def end_orphans(self, grace_s: float) -> bool:
        """End whoever left the groups; whether there was anybody."""
        if self._confined:
            return False
        from openry.sandbox.orphans import end_orphans

        known = {one.pid for one in self.processes if one.exit_code is None}
        known.update(keeper.pid for keeper, _ in self._watched)
        mark = f"TMPDIR={self._mark}\0".encode()
        return bool(end_orphans(known, mark, alone=self._alone, grace_s=grace_s))

    def close(self) -> None:
        """Whatever happened: kill what still runs, reap it, hear what the sandbox reported."""
        for process in self.processes:
            if not process.has_ended():
                process.signal_group(KILL)
            process.reap()
        self.is_torn_down()
        for process in self.processes:
            process.close()
        for helper in self._helpers:
            helper.close()
        while self.groups:
            self.groups.pop().remove()
        while self._watched:
            keeper, line = self._watched.pop()
            keeper.end(line)
