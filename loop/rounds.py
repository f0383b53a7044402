"""The rounds: diagnose, propose, gate, take the first that is better, write it down.

This is the one loop of the loop. What it decides depends only on the journal, the snapshot and
the (recorded) answers of models, so that a resumed session decides the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice

from loop import blame, finishing, rules
from loop.alternatives import Current, alternatives, same_results
from loop.apply import apply, data_of, dump
from loop.diagnose import FOR_A_PERSON, Diagnosis, FailureClass, diagnose
from loop.edits import Proposal
from loop.events import attempt_event, diff, judged_event, round_event, trying_event
from loop.evidence import Trial
from loop.gatekeeper import Gatekeeper
from loop.journal import Attempt, Gate, History, Journal, Round, text_hash
from loop.ladder import rung
from loop.rules import Scene
from loop.work import Emit, Question, Runner, Work
from openry.clock import Monotonic, monotonic, utc_now
from openry.errors import BadFileError, UsageError

#: Rounds in a row without an accepted proposal before the loop gives up.
PATIENCE = 3
#: How often one failure may survive an accepted edit.
SAME_SIGNATURE = 3
#: Seconds of one round that trying other readings may take.
ALTERNATIVES_S = 60.0

#: Other readings that are tried when only a soft rule is broken.
SOFT_ALTERNATIVES = 8


@dataclass(frozen=True, slots=True)
class Stop:
    """Why the rounds ended, and the round that stands."""

    reason: str
    round: Round
    sentence: str = ""


class Rounds:
    """Runs rounds until there is a reason to stop."""

    def __init__(
        self,
        work: Work,
        runner: Runner,
        journal: Journal,
        emit: Emit,
        *,
        spent: Callable[[], tuple[int, float]] = lambda: (0, 0.0),
        clock: Monotonic = monotonic,
        keeper: Callable[[Work, Runner], Gatekeeper] = Gatekeeper,
    ) -> None:
        self.work = work
        self.runner = runner
        self.journal = journal
        self.emit = emit
        self.spent = spent
        self.clock = clock
        self.gatekeeper = keeper(work, runner)
        self._blamed: dict[str, Diagnosis] = {}

    def draft(self, text: str) -> Round:
        """Round 0: run the draft and write it down."""
        began, tokens, cost = self._begin()
        trial = self.runner.run(text)
        verdict = _standing(trial)
        first = Round(0, text, trial, verdict)
        return self._end(first, began, tokens, cost, edits=0)

    def go(self, history: History) -> Stop:
        """Rounds from where the journal stands until something stops them."""
        while True:
            current = history.rounds[-1]
            stop = self._stop(history, current)
            if stop is None and finishing.due(history, _certified(history).number):
                self._certify(history, current)
            elif stop is None:
                self._round(history, current)
            elif stop.round.trial.acceptable and self._finish(history, current):
                pass  # what was found may end the rounds otherwise
            else:
                return stop
            history = self._known()

    def _finish(self, history: History, current: Round) -> bool:
        """Certify and prune what is good enough; whether anything was written."""
        names = {gate.name for gate in current.gates}
        if "G5" not in names:
            self._certify(history, current)
            return True
        self.emit("phase", {"phase": "prune"})
        pruned = None if "G6" in names else finishing.prune(history, current, self.runner.run)
        self.emit("phase", {"phase": "rounds"})
        if pruned is None:
            return False
        self._prune(history, current, pruned)
        return True

    def _certify(self, history: History, current: Round) -> None:
        """G5: `current` beside the last round that was certified; a worse one is taken back."""
        base = _certified(history)
        number = 1 + sum(any(g.name == "G5" for g in r.gates) for r in history.rounds)
        self.emit("phase", {"phase": "certify"})
        began, tokens, cost = self._begin()
        instances = self.work.instances
        found = finishing.certified(base, current, number, instances, self.runner.run)
        self.emit("phase", {"phase": "rounds"})
        self.emit("judged", judged_event(current, found.gate))
        gates = (*current.gates, found.gate)
        self.journal.certified(current.number, gates, (found.passed, found.runs))
        if not found.worse:
            return
        for attempt in history.accepted:
            if attempt.round > base.number:
                self.journal.judged(attempt, "reverted", reason=found.gate.note)
        back = replace(base, number=current.number + 1, verdict="reverted", diagnosis=None)
        kept = sum(attempt.round <= base.number for attempt in history.accepted)
        self._end(back, began, tokens, cost, edits=kept)

    def _prune(self, history: History, current: Round, pruned: finishing.Pruned) -> None:
        """G6: write what was found; a workflow that became smaller is a round of its own."""
        gates = (*current.gates, pruned.gate)
        self.emit("judged", judged_event(current, pruned.gate))
        if not pruned.dropped:
            self.journal.certified(current.number, gates, current.runs)
            return
        began, tokens, cost = self._begin()
        for attempt in pruned.dropped:
            self.journal.judged(attempt, "pruned", reason="without effect")
        smaller = Round(
            current.number + 1, pruned.text, pruned.trial, "pruned", gates=gates, runs=current.runs
        )
        left = len(history.accepted) - len(pruned.dropped)
        self._end(smaller, began, tokens, cost, edits=left)

    def _known(self) -> History:
        found = self.journal.history()
        assert found is not None
        return found

    def _stop(self, history: History, current: Round) -> Stop | None:
        trial = current.trial
        if trial.satisfied or (trial.acceptable and not self.work.soft_counts):
            return Stop("target_met", current)
        if trial.state == "suspended":
            return Stop("needs_human", current, "a step waits for a person")
        diagnosis = self._diagnosis(trial)
        if diagnosis.failure_class in FOR_A_PERSON and not trial.acceptable:
            reason = "infra_unhealthy" if diagnosis.failure_class is FailureClass.INFRA else ""
            return Stop(reason or "needs_human", current, diagnosis.cause)
        waiting = [a for a in history.of_round(current.number) if a.verdict == "waiting"]
        if waiting:
            words = f"only a person may accept `{waiting[0].proposal.summary}`"
            return Stop("needs_human", current, words)
        fruitless = _fruitless(history)
        patience = PATIENCE + self.work.rungs - 1
        exhausted = fruitless >= (patience if self.work.ask else 1)
        if exhausted:
            return Stop("converged" if trial.acceptable else "plateau", current, diagnosis.cause)
        if current.number >= self.work.max_rounds:
            return Stop("converged" if trial.acceptable else "rounds", current, diagnosis.cause)
        if _survived(history, diagnosis.signature) >= SAME_SIGNATURE:
            return Stop("duplicate_signature", current, diagnosis.cause)
        if self.work.time_is_over():
            return Stop("budget_time", current, "the time for this task is over")
        return None

    def _round(self, history: History, current: Round) -> None:
        began, tokens, cost = self._begin()
        number = current.number + 1
        diagnosis = self._located(current.trial)
        self.emit("round", {"round": number, "diagnosis": diagnosis.to_data()})
        accepted = self._accepted(history, current, diagnosis, number)
        if accepted is not None and accepted.trial is not None:
            after = Round(number, accepted.text, accepted.trial, "accepted", diagnosis)
        else:
            after = replace(
                current,
                number=number,
                verdict="nothing accepted",
                diagnosis=diagnosis,
                gates=(),
                runs=(0, 0),
            )
        edits = sum(a.accepted for a in history.attempts if a.round < number)
        self._end(after, began, tokens, cost, edits=edits + (accepted is not None))

    def _accepted(
        self, history: History, current: Round, diagnosis: Diagnosis, number: int
    ) -> Attempt | None:
        """Try proposals until one is good enough; else the best of those that were better."""
        tried = list(history.open_attempts)
        done = next((attempt for attempt in tried if attempt.accepted), None)
        if done is not None:
            return done
        texts = [each.text for each in history.rounds] + [each.text for each in history.attempts]
        seen = set(map(text_hash, texts))
        for proposal in self._proposals(history, current, diagnosis):
            attempt = self._consider(
                proposal, current, diagnosis, history, number, len(tried), seen
            )
            if attempt is None:
                continue
            tried.append(attempt)
            self.journal.attempt(attempt)
            self.emit("attempt", attempt_event(attempt))
            if attempt.verdict in ("accepted", "waiting"):
                return attempt if attempt.accepted else None
        better = [a for a in tried if a.trial and all(gate.passed for gate in a.gates)]
        if not better:
            return None
        best = max(better, key=lambda attempt: (attempt.trial.score, -attempt.position))  # type: ignore[union-attr]  # filtered above
        taken = replace(
            best, position=len(tried), verdict="accepted", reason="the best of those tried"
        )
        self.journal.attempt(taken)
        self.emit("attempt", attempt_event(taken))
        return taken

    def _proposals(
        self, history: History, current: Round, diagnosis: Diagnosis
    ) -> Iterator[Proposal]:
        scene = self._scene(current, diagnosis)
        memory = self.work.remember(diagnosis)
        known = sorted(rules.propose(scene), key=memory.rank)
        yield from (each for each in known if not each.needs_person)
        most = SOFT_ALTERNATIVES if current.trial.acceptable else None
        end = self.clock() + ALTERNATIVES_S
        for proposal in islice(self._readings(scene), most):
            if self.clock() > end:
                break
            yield proposal
        if self.work.ask is not None and not current.trial.acceptable:
            step = scene.step
            tried = [
                _tried_words(a) for a in history.attempts if a.signature == diagnosis.signature
            ]
            found = self.work.ask(
                Question(
                    scene,
                    dump(step) if step else "",
                    tried,
                    memory.lines(),
                    current.number + 1,
                    rung(history.rounds, diagnosis.signature, self.work.rungs),
                )
            )
            if found is not None:
                yield found
        yield from (each for each in known if each.needs_person)

    def _readings(self, scene: Scene) -> Iterator[Proposal]:
        current = Current(scene.workflow, self.work.drafted)
        if self.work.drafted:
            yield from alternatives(current, self.work.candidates, self.work.make, dump)
        else:
            blamed = [scene.diagnosis.step, *scene.diagnosis.suspects]
            yield from same_results(
                current, blamed, self.work.candidates, self.work.make, self.work.registry
            )

    def _consider(
        self,
        proposal: Proposal,
        current: Round,
        diagnosis: Diagnosis,
        history: History,
        number: int,
        position: int,
        seen: set[str],
    ) -> Attempt | None:
        """One proposal through the gates; None when the same text was tried before."""
        try:
            text = proposal.redraft or apply(current.text, proposal.edits)
        except BadFileError as error:
            text, trial = "", None
            found: tuple[Gate, ...] = (Gate("G0", False, f"cannot be carried out: {error}"),)
        else:
            if text_hash(text) in seen:
                return None
            seen.add(text_hash(text))
            self.emit("try", trying_event(proposal))
            found, trial = self.gatekeeper.judge(
                proposal, current.trial, current.text, text, history
            )
        passed = all(gate.passed for gate in found)
        verdict, reason = _verdict(
            proposal, passed, trial, found, takes_first=self.gatekeeper.takes_first
        )
        return Attempt(
            number,
            position,
            proposal,
            diagnosis.signature,
            text,
            diff(current.text, text) if text else "",
            found,
            verdict,
            reason,
            trial,
        )

    def _scene(self, current: Round, diagnosis: Diagnosis) -> Scene:
        return Scene(
            self.work.task,
            data_of(current.text),
            current.trial,
            diagnosis,
            self.work.survey,
            self.work.hard,
            self.work.soft,
            self.work.registry,
        )

    def _diagnosis(self, trial: Trial) -> Diagnosis:
        return diagnose(trial, self.work.hard, self.work.soft)

    def _located(self, trial: Trial) -> Diagnosis:
        """The diagnosis, which blames the first bad step where the order allows draws for it."""
        if trial.instance_id not in self._blamed:
            found = self._diagnosis(trial)
            if self.work.instances > 1 and trial.asks_models and not trial.acceptable:
                self.emit("phase", {"phase": "locate"})
                draws = min(self.work.instances, blame.DRAWS)
                with suppress(UsageError):  # those files are not kept any more
                    found = blame.located(found, trial, self.runner.rest, draws)
                self.emit("phase", {"phase": "rounds"})
            self._blamed[trial.instance_id] = found
        return self._blamed[trial.instance_id]

    def _begin(self) -> tuple[tuple[float, str], int, float]:
        tokens, cost = self.spent()
        return (self.clock(), utc_now()), tokens, cost

    def _end(
        self, round_: Round, began: tuple[float, str], tokens: int, cost: float, *, edits: int
    ) -> Round:
        now_tokens, now_cost = self.spent()
        whole = replace(
            round_,
            seconds=round(self.clock() - began[0], 3),
            tokens=now_tokens - tokens,
            cost_usd=now_cost - cost,
        )
        self.journal.round(whole, edits=edits, started_at=began[1])
        self.emit("round_end", round_event(whole))
        return whole


def _verdict(
    proposal: Proposal,
    passed: bool,
    trial: Trial | None,
    found: Sequence[Gate],
    *,
    takes_first: bool,
) -> tuple[str, str]:
    """(verdict, reason). Another reading that leaves a soft rule open waits for a better one."""
    if not passed:
        return "rejected", next(gate.note for gate in found if not gate.passed)
    if proposal.needs_person:
        return "waiting", "only a person may accept it"
    assert trial is not None
    if takes_first or trial.satisfied or not proposal.origin.startswith("candidate:"):
        return "accepted", found[-1].note
    return "rejected", "better, but not all that the wording suggests; others are tried first"


def _standing(trial: Trial) -> str:
    if trial.satisfied:
        return "satisfied"
    return "acceptable" if trial.acceptable else "failed"


def _certified(history: History) -> Round:
    """The latest round that was certified; the draft where none was."""
    done = [each for each in history.rounds if any(gate.name == "G5" for gate in each.gates)]
    return done[-1] if done else history.rounds[0]


def _fruitless(history: History) -> int:
    """Rounds at the end of the history in which nothing was accepted."""
    count = 0
    for round_ in reversed(history.rounds):
        if round_.verdict != "nothing accepted":
            break
        count += 1
    return count


def _survived(history: History, failing: str) -> int:
    """How many accepted rounds had this failure as theirs."""
    return sum(
        round_.diagnosis is not None
        and round_.diagnosis.signature == failing
        and round_.verdict == "accepted"
        for round_ in history.rounds
    )


def _tried_words(attempt: Attempt) -> str:
    return f"{attempt.proposal.summary}: {attempt.verdict}, {attempt.reason}"


def sums(rounds: Iterable[Round]) -> tuple[int, float, float]:
    """(tokens, USD, seconds) of some rounds."""
    listed = list(rounds)
    return (
        sum(each.tokens for each in listed),
        sum(each.cost_usd for each in listed),
        sum(each.seconds for each in listed),
    )
