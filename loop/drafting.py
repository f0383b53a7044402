"""The first workflow, by the strategy that the planner can carry; and the planner's edits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from loop import planner, templates
from loop.apply import agent_step_data, apply, check_draft, check_text, data_of, dump
from loop.edits import Edit, Proposal
from loop.order import STRUCTURED, Order
from loop.understanding import Understood
from loop.values import Survey
from loop.work import Question
from openry.errors import BadFileError, ModelError
from openry.llm import Purpose
from openry.orchestrator.rules import RULE_TYPES

if TYPE_CHECKING:
    from loop.kit import Kit
    from loop.models import Models

#: What a model says that no rule can make anything of; another round may do better.
_USELESS = ("empty_answer", "bad_answer")


@dataclass(frozen=True, slots=True)
class Drafted:
    """A workflow text, its plan, and the result files that its author named."""

    text: str
    plan: tuple[str, ...]
    results: tuple[str, ...] = ()


class Drafter:
    """Drafts for one session, and asks its planner."""

    def __init__(self, kit: Kit, order: Order, session_id: str, models: Models) -> None:
        self.kit = kit
        self.order = order
        self.session_id = session_id
        self.models = models

    def draft(self, understood: Understood) -> Drafted:
        """The workflow to begin with: the given one, the planner's, the reading's, or an agent.

        What a person gives keeps its comments and its form; drafts are canonical.

        Raises:
            ModelError: The planner cannot be asked or gave no usable draft.
            BudgetError: A call would exceed the budget.
        """
        order, reading = self.order, understood.reading
        if order.source:
            return Drafted(order.source, understood.plan)
        known = self._known()
        if known is not None:
            return known
        if order.strategy == STRUCTURED:
            return self._ask(understood)
        if not reading.candidates:
            tools = self.kit.reader.nearest(order.task)
            data = agent_step_data(understood.name, order, understood.acceptance, tools)
            return Drafted(dump(data), understood.plan)
        best = reading.candidates[0]
        data_of_best = self.kit.workflow_data(best, understood.name, order.task)
        return Drafted(dump(data_of_best), understood.plan, best.results)

    def _known(self) -> Drafted | None:
        """The draft of a template whose task this is, with other literals."""
        found = templates.find(self.kit.config.home / "templates", self.order.task)
        if found is None:
            return None
        template, text = found
        if check_draft(data_of(text), self.order.task, self.kit.registry):
            return None
        steps = [str(step["id"]) for step in data_of(text)["sub_steps"]]
        plan = (f"as template `{template.name}` does it: {', '.join(steps)}",)
        return Drafted(text, plan)

    def propose(self, question: Question) -> Proposal | None:
        """The planner's edits for a failure; None when it said nothing usable.

        A rung with a model that only chooses has nothing to say.

        Raises:
            ModelError: It cannot be asked.
            BudgetError: A call would exceed the budget.
        """

        def check(edits: Sequence[Edit]) -> str:
            try:
                before = scene.trial.text
                return "; ".join(check_text(apply(before, edits), self.kit.registry, before))
            except BadFileError as error:
                return str(error)

        scene = question.scene
        name = self.order.planners[question.rung]
        if name.startswith("local/"):
            return None
        purpose = Purpose(
            "edit", self.session_id, step_id=scene.diagnosis.step, round=question.round
        )
        try:
            shown = replace(scene, survey=self._shown(scene.survey))
            return planner.propose(
                self.models.open(name),
                shown,
                question.step,
                question.tried,
                check,
                helped=question.helped,
                purpose=purpose,
            )
        except ModelError as error:
            if error.code in _USELESS:
                return None
            raise

    def _shown(self, survey: Survey) -> Survey:
        """The survey as a model may read it: without secrets."""
        files = (replace(file, head=self.kit.redact(file.head)) for file in survey.files)
        return replace(survey, files=tuple(files))

    def _ask(self, understood: Understood) -> Drafted:
        drafted = planner.draft(
            self.models.planner(),
            self.order.task,
            self._shown(understood.survey),
            self.kit.registry,
            understood.acceptance.hard,
            lambda data: "; ".join(check_draft(data, self.order.task, self.kit.registry)),
            rule_types=tuple(RULE_TYPES),
            purpose=Purpose("draft", self.session_id),
        )
        text = dump({**drafted.data, "name": understood.name})
        return Drafted(text, drafted.plan or understood.plan, drafted.results)


def ways_out(error: ModelError, order: Order) -> str:
    """A planner's failure as a sentence that says what to do."""
    if order.strategy != STRUCTURED or "--planner" in str(error):
        return str(error)
    ways = "use `--planner local/smollm2`, or set OPENRY_PLANNER_MODEL to another model"
    return f"{error} ({ways})"
