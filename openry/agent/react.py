"""The built-in agent: act through the hand, look, until it reports or is stopped.

It acts by tool calls where the model has them, else by one JSON object a turn that a grammar
holds. Nothing is run from a reply that was cut, and the same failure three times ends the work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from openry.agent import actions, prompt
from openry.agent.actions import Action, Call, Look, Nonsense, Report, Run
from openry.agent.conversation import Conversation
from openry.agent.evidence import gather
from openry.agent.offer import Answered, Offer
from openry.agent.schedule import carry_out
from openry.agent.task import AgentEnding, AgentOutcome, AgentTask, Mode
from openry.agent.touches import ANYTHING, Touch, of_line, waits
from openry.capability import Registry
from openry.clock import Monotonic, monotonic
from openry.errors import BudgetError, ModelError
from openry.llm import ChatReply, ChatRequest, Message, Model, Purpose, assistant, system, user
from openry.llm.repair import extract
from openry.models import Command, CommandResult, Ending
from openry.output.kinds import task_words

#: Identical failures of one action after which nothing new is to be expected.
MAX_SAME_FAILURES = 3
#: The same for identical answers of any kind, one right after the other.
MAX_SAME_ANSWERS = 4
#: Turns left to report a status after the soft brake.
TURNS_AFTER_BRAKE = 2
#: How the hand begins to say that an agent goes round in circles: no part of a result.
_WARNING = "openry: you ran "
_ALONE = nullcontext()
_FINAL = frozenset({"completed", "failed", "cancelled", "overflow"})


class Acknowledgement(Protocol):
    """What the ledger answers to a report; `message` says what is missing."""

    @property
    def acknowledged(self) -> bool: ...

    @property
    def message(self) -> str: ...


class Hand(Protocol):
    """The only way from an action to a process; the forwarder's `Hand` is one."""

    def forward(self, command: Command) -> CommandResult: ...

    def look(self, words: Sequence[str]) -> CommandResult: ...

    def report(self, status: str, payload: dict[str, Any]) -> Acknowledgement: ...


def run_agent(
    task: AgentTask,
    model: Model,
    hand: Hand,
    registry: Registry,
    *,
    purpose: Purpose = Purpose(),  # noqa: B008  # a frozen value
    redact: prompt.Redact = str,
    should_stop: Callable[[], bool] = lambda: False,
    now: Monotonic = monotonic,
    together: AbstractContextManager[object] = _ALONE,
    summarizer: Model | None = None,
) -> AgentOutcome:
    """Let `model` work on `task` until it reports a final status or a cap is reached.

    Every text passes `redact` before the model reads it. A model that cannot be asked is an
    outcome, not an exception.

    Args:
        together: Entered while several actions may be under way.
        summarizer: Tells what older turns came to, where the window has no room for them.

    Raises:
        NotFoundError: The step offers a capability that the registry does not have.
    """
    talk = Conversation(
        model,
        redact,
        task_words(task.text),
        summarizer=summarizer,
        purpose=replace(purpose, purpose="summary"),
    )
    agent = _Agent(task, model, hand, Offer(task, registry), purpose, talk, together)
    return agent.work(should_stop, now)


class _Agent:
    def __init__(
        self,
        task: AgentTask,
        model: Model,
        hand: Hand,
        offer: Offer,
        purpose: Purpose,
        talk: Conversation,
        together: AbstractContextManager[object],
    ) -> None:
        self.task = task
        self.together = together
        self.hand = hand
        self.offer = offer
        self.purpose = purpose
        self.tool_calling = model.tool_calling
        self.talk = talk
        self.acted = 0
        self.overflowed = False  #: an answer was too large, so that may be reported
        self.braked = 0
        self.without_action = 0
        self.cuts = 0
        self.failures: Counter[tuple[str, str]] = Counter()
        self.last: tuple[str, str] = ("", "")
        self.in_a_row = 0

    def work(self, should_stop: Callable[[], bool], now: Monotonic) -> AgentOutcome:
        self._open()
        outcome = None
        while outcome is None:
            stop = "braked" if should_stop() else self._spent_cap(now())
            outcome = self._stopped(stop) if stop else self._turn()
        return outcome

    def _open(self) -> None:
        as_functions = self.tool_calling and self.task.mode is Mode.CAPABILITIES
        described = "" if as_functions else self.offer.described()
        contract = prompt.system_prompt(
            self.task, tool_calling=self.tool_calling, capabilities=described
        )
        files = gather(self.task.text, self.task.workspace).files
        self.talk.say(system(contract))
        self.talk.say(user(prompt.task_prompt(self.task, files)))

    def _spent_cap(self, now_s: float) -> str:
        if self.task.deadline_s is not None and now_s >= self.task.deadline_s:
            return "timeout"
        if self.task.max_turns and self.talk.spent.turns >= self.task.max_turns:
            return "max_turns"
        return "braked" if self.braked > TURNS_AFTER_BRAKE else ""

    # --- one turn -------------------------------------------------------------------------

    def _turn(self) -> AgentOutcome | None:
        """Ask, and carry out what the reply asks for; an outcome ends the work."""
        self.braked += bool(self.braked)
        try:
            reply = self.talk.ask(self._question())
        except BudgetError as error:
            return self._stopped(f"budget: {error}")
        except ModelError as error:
            if error.code == "cut":
                return self._cut()
            return self._ended(AgentEnding.FAILED, f"{error.code}: {error}")
        if reply.finish_reason == "length":
            return self._cut()
        self.talk.say(assistant(reply.text, reply.tool_calls))
        asked, answers = self._actions(reply), dict[int, Answered]()
        for place, (action, call_id) in enumerate(asked):
            if place not in answers:
                answers |= self._at_once(asked, place)
            outcome = self._act(action, call_id, answers.get(place))
            if outcome is not None:
                return outcome
        return None

    def _question(self) -> ChatRequest:
        """What the model may answer with now: the folder may hold other files than before."""
        task = self.task
        evidence = gather(task.text, task.workspace)
        schema: actions.Schema | None = None
        if not self.tool_calling:
            calls = None if task.mode is Mode.FREE else self.offer.schemas(evidence)
            may_report = bool(self.acted) or calls is None
            schema = actions.turn_schema(
                calls,
                task.payload_keys,
                task.expect_payload,
                may_report=may_report,
                may_overflow=self.overflowed,
                at_once=task.parallel_actions,
            )
        return ChatRequest(
            (),
            schema=schema,
            tools=self.offer.functions(evidence) if self.tool_calling else (),
            max_tokens=task.max_tokens,
            temperature=task.temperature,
            seed=task.seed,
            purpose=self.purpose,
        )

    def _actions(self, reply: ChatReply) -> list[tuple[Action, str]]:
        if reply.tool_calls:
            return [
                (actions.from_tool_call(call.name, call.parsed()), call.id)
                for call in reply.tool_calls
            ]
        if self.tool_calling:
            return [(Nonsense("it calls no tool"), "")]
        try:
            data = extract(reply.text, "json").value
        except ModelError as error:
            return [(Nonsense(str(error)), "")]
        some = actions.all_of(data) if self.task.parallel_actions > 1 else [data]
        return [(actions.from_json(one), "") for one in some]

    def _at_once(self, asked: Sequence[tuple[Action, str]], start: int) -> dict[int, Answered]:
        """What the deeds from `start` up to the next report come to, where some may run at the
        same time; by their places. Near a limit they are done in turn: the last ones are braked.
        """
        deeds: list[Run | Call | Look] = []
        for action, _ in asked[start:]:
            if isinstance(action, Report | Nonsense):
                break
            deeds.append(action)
        limit, at_once = self.task.max_tool_calls, self.task.parallel_actions
        if at_once < 2 or len(deeds) < 2 or (limit and self.acted + len(deeds) > limit):
            return {}
        order = waits([self._touch(deed) for deed in deeds])
        with self.together:
            work = [partial(self._carried_out, each) for each in deeds]
            answers = carry_out(work, order, at_once)
        return dict(enumerate(answers, start))

    def _touch(self, action: Run | Call | Look) -> Touch:
        if isinstance(action, Run):
            return of_line(action.command, self.task.workspace)
        return self.offer.touch(action) if isinstance(action, Call) else ANYTHING

    def _act(
        self, action: Action, call_id: str, answered: Answered | None = None
    ) -> AgentOutcome | None:
        if isinstance(action, Nonsense):
            return self._no_action(action, call_id)
        self.without_action = 0
        if isinstance(action, Report):
            return self._report(action, call_id)
        self.acted += 1
        answered = answered or self._carried_out(action)
        if answered.braked and not self.braked:
            self.braked = 1
        return self._answer(action, answered, call_id)

    def _carried_out(self, action: Run | Call | Look) -> Answered:
        if isinstance(action, Call):
            return self.offer.call(action, self.hand.forward)
        if self.task.mode is Mode.CAPABILITIES:
            names = ", ".join(self.offer.names)
            return Answered(f"commands are not offered here; offered: {names}", failed=True)
        if isinstance(action, Look):
            result = self.hand.look(action.words)
        else:
            result = self.hand.forward(Command(text=action.command))
            self.overflowed = self.overflowed or bool(result.spill)
        return Answered(
            result.answer().to_json(),
            failed=result.exit_code != 0,
            braked=result.ending is Ending.BRAKED,
            key=f"{result.exit_code} {result.stdout} {result.stderr.partition(_WARNING)[0]}",
        )

    def _report(self, report: Report, call_id: str) -> AgentOutcome | None:
        missing = [key for key in self.task.payload_keys if key not in report.payload]
        if report.status == "completed" and missing:
            names = ", ".join(f"`{key}`" for key in missing)
            answered = Answered(f"not accepted: the payload lacks {names}", failed=True)
            return self._answer(report, answered, call_id)
        said = self.hand.report(report.status, dict(report.payload))
        if said.acknowledged and report.status in _FINAL:
            return self._ended(AgentEnding(report.status), "", report)
        answered = Answered(said.message or "noted", failed=not said.acknowledged)
        return self._answer(report, answered, call_id)

    def _no_action(self, nonsense: Nonsense, call_id: str) -> AgentOutcome | None:
        """Told once how to act; after that it is a failure."""
        self.without_action += 1
        if self.without_action > 1:
            return self._stopped(f"no_action: {nonsense.why}")
        text = prompt.no_action_prompt(
            nonsense.why,
            tool_calling=self.tool_calling,
            names=self.offer.function_names(),
            example=self.offer.example(),
        )
        self._say(text, call_id)
        return None

    def _cut(self) -> AgentOutcome | None:
        """Nothing of a reply that was cut is run; it is asked for once more, then given up."""
        self.cuts += 1
        if self.cuts > 1:
            return self._stopped("cut: the model's reply was cut off twice; nothing of it was run")
        self.talk.say(user("Your reply was cut off and nothing of it was run. Answer shorter."))
        return None

    def _answer(self, action: Action, answered: Answered, call_id: str) -> AgentOutcome | None:
        """Tell the model what came of its action, unless it goes round in circles."""
        self._say(answered.text, call_id)
        pair = (repr(action), answered.key or answered.text)
        self.in_a_row = self.in_a_row + 1 if pair == self.last else 1
        self.last = pair
        self.failures[pair] += answered.failed
        looped = self.failures[pair] >= MAX_SAME_FAILURES or self.in_a_row >= MAX_SAME_ANSWERS
        return self._stopped("looped: the same action with the same result") if looped else None

    def _say(self, text: str, call_id: str) -> None:
        self.talk.say(Message("tool", text, tool_call_id=call_id) if call_id else user(text))

    # --- the end --------------------------------------------------------------------------

    def _stopped(self, reason: str) -> AgentOutcome:
        return self._ended(AgentEnding.STOPPED, reason)

    def _ended(
        self, ending: AgentEnding, reason: str, report: Report | None = None
    ) -> AgentOutcome:
        spent = self.talk.spent
        return AgentOutcome(
            ending,
            reason,
            report.payload if report else {},
            turns=spent.turns,
            tool_calls=self.acted,
            prompt_tokens=spent.prompt_tokens,
            completion_tokens=spent.completion_tokens,
            cost_usd=spent.cost_usd,
        )
