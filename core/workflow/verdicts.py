"""From a verdict to what happens next: closing a step, its route, the breaker, drift (docs/specs/workflows.md §4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from core.workflow import entries, learn, paths, texts, times
from core.workflow.filling import files_of
from core.workflow.model import BREAKER_AT, CONSOLE, ENGINE, Control, Kind, Option, Rule, Verdict
from core.workflow.routes import PILOTE
from core.workflow.state import LEARNING_STREAM, Run, Step
from core.workflow.turn import Turn, notice, packet, spawn_id


def close_step(
    turn: Turn,
    run_id: str,
    index: int,
    result: str,
    *,
    signal: str | None,
    cause: str | None,
    by: str,
    recorded: Any = None,
) -> bool:
    """Close the open step of an item. Returns whether its route is to be followed (not in an aborted run)."""
    run = turn.run(run_id)
    item = run.items[index]
    number = item.steps[-1]
    step = run.steps[number]
    fields: dict[str, Any] = {
        "index": index,
        "step": number,
        "attempt": step.attempt,
        "resumes": step.resumes,
        "result": result,
        "signal": signal,
        "cause": cause,
        "by": by,
        "duration_ms": max(0, turn.now - step.spawned_at),
        "breaker": texts.breaker_key(run.spec.work(index)),
    }
    if recorded is not None:
        fields["recorded"] = recorded
    if run.aborted is not None:
        turn.emit(run_id, "step_closed", **fields, final=True)
        return False
    turn.emit(run_id, "step_closed", **fields)
    if result == "error":
        learn.count_error(turn, run_id, index, cause)
    if step.rule is not None:
        learn.judge_attempt(turn, step.rule, result)
    return True


def drifted(run: Run, index: int, modified: list[object], files: list[str]) -> bool:
    """Whether a path that was modified is neither one of the item's files nor below one."""
    for path in modified:
        made = paths.normal(path) if isinstance(path, str) else None
        if made is None or not any(paths.covers(folder, made) for folder in files):
            return True
    return False


def settle(turn: Turn, run_id: str, index: int, modified: list[object] | None = None) -> None:
    """Follow the verdict of the step that was just closed: drift first, then its route."""
    run = turn.run(run_id)
    if modified and drifted(run, index, modified, files_of(run, index)):
        entries.open_entry(turn, run_id, index, "drift", cause="scope_drift", hold={"at": "route"})
        return
    follow_route(turn, run_id, index)


def follow_route(turn: Turn, run_id: str, index: int) -> None:
    """Run the effects of the verdict's route, left to right, then its control."""
    run = turn.run(run_id)
    step = turn.last_step(run_id, index)
    verdict = cast("Verdict", step.result)
    route = run.spec.work(index).route(verdict)
    made_id = spawn_id(run_id, index, step.attempt, step.resumes)
    for number, effect in enumerate(route.effects):
        fields: dict[str, Any] = {"index": index, "attempt": step.attempt, "effect": effect.do}
        facts = {
            "item": step.item,
            "index": index,
            "attempt": step.attempt,
            "agent": step.agent,
            "cause": step.cause,
        }
        if effect.do in ("ERROR", "CHECKPOINT"):
            to = run.parent if effect.do == "ERROR" else effect.target or PILOTE
            name = f"{made_id}/{effect.do.lower()}"
            fields["sends"] = packet(
                name, turn.at, to, effect.do, {"context": facts}, run_id, index, step.attempt, in_reply_to=None
            )
        elif effect.do == "notify":
            told = notice(f"{made_id}/{number}", effect.target or PILOTE, "update", "NOTIFY", run_id)
            fields.update(target=effect.target, notices=[told])
        else:
            fields.update(item=step.item, verdict=verdict, cause=step.cause)
        turn.emit(run_id, "effect_run", **fields)
    _control(turn, run_id, index, verdict)


def _control(turn: Turn, run_id: str, index: int, verdict: Verdict) -> None:
    run = turn.run(run_id)
    step, work = turn.last_step(run_id, index), run.spec.work(index)
    route = work.route(verdict)
    control: Control | None = route.control
    retries = verdict != "success" and _may_retry(run, index, verdict, route.retry, step.cause)
    if verdict == "partial" and run.mode != "swarm" and (retries or route.control.do in ("next", "goto")):
        retries, control = False, Control(do="escalate", target=PILOTE)
    if retries:
        control = None
    if verdict in ("fail", "error") and _starts_more(run, index, control):
        key = texts.breaker_key(work)
        if run.breakers.get(key, 0) >= BREAKER_AT and not _breaker_open(run, key):
            hold = {"at": "control", "control": None if control is None else control.plain()}
            asked = entries.open_entry(turn, run_id, index, "circuit_break", cause=step.cause, hold=hold)
            turn.emit(run_id, "breaker_opened", breaker=key, entry=asked.id, index=index)
            return
    perform(turn, run_id, index, control)


def _may_retry(run: Run, index: int, verdict: Verdict, times_: int | None, cause: str | None) -> bool:
    """Whether an automatic retry is due before the control (§4, "Attempts")."""
    spec = run.spec
    bound = times_ if times_ is not None else spec.retry.max if verdict in spec.retry.on else 0
    if run.items[index].auto_retries >= bound:
        return False
    return cause != "timeout" or spec.idempotent


def _starts_more(run: Run, index: int, control: Control | None) -> bool:
    """Whether a control (None: a retry) by itself starts more work."""
    if control is None or control.do == "goto":
        return True
    return control.do == "next" and (run.cursor < run.total or run.fresh > 0)


def _breaker_open(run: Run, key: str) -> bool:
    for name in run.open_entries:
        entry = run.entries.get(name)
        if entry is None or entry.kind != "circuit_break" or entry.item_index is None:
            continue
        if texts.breaker_key(run.spec.work(entry.item_index)) == key:
            return True
    return False


def perform(turn: Turn, run_id: str, index: int, control: Control | None) -> None:
    """Let a control happen; None is a retry."""
    run = turn.run(run_id)
    step = turn.last_step(run_id, index)
    verdict = cast("Verdict", step.result)
    if control is None:
        due = times.text(turn.now + run.spec.retry.backoff)
        turn.emit(run_id, "effect_run", index=index, attempt=step.attempt, effect="retry", due=due)
    elif control.do == "next":
        close_item(turn, run_id, index)
    elif control.do == "goto":
        close_item(turn, run_id, index, cursor=control.step)
    elif control.do == "abort":
        close_item(turn, run_id, index)
        entries.abort_run(turn, run_id, ENGINE)
    elif control.do == "gate":
        entries.open_entry(
            turn,
            run_id,
            index,
            "gate",
            target=control.target,
            reasons=("route",),
            question=control.text,
            hold={"at": "next"},
        )
    elif control.do == "block":
        block(turn, run_id, index, cause=step.cause, target=control.target)
    else:
        ask(turn, run_id, index, verdict_kind(verdict), cause=step.cause, target=control.target)


def verdict_kind(verdict: Verdict) -> Kind:
    return "gate" if verdict == "success" else verdict


def block(
    turn: Turn,
    run_id: str,
    index: int,
    *,
    cause: str | None,
    target: str | None = None,
    context: Any = None,
    raised_by: str = ENGINE,
    hold: Mapping[str, Any] | None = None,
) -> None:
    """A block; the same one again after an unblock becomes a decision instead (§7)."""
    by_route = raised_by == ENGINE
    about = entries.block_about(context, cause, by_route)
    last = turn.item(run_id, index).last_block
    hold = hold or {"at": "resume"}
    if last is not None and last == (about, True):
        entries.open_entry(
            turn, run_id, index, "error", cause="block_repeated", raised_by=raised_by, target=target, hold=hold
        )
        return
    entries.open_entry(
        turn,
        run_id,
        index,
        "block",
        cause=cause,
        raised_by=raised_by,
        target=target,
        hold=hold,
        context=entries.block_facts(context),
        block=about,
    )


def ask(
    turn: Turn,
    run_id: str,
    index: int,
    kind: Kind,
    *,
    cause: str | None,
    target: str | None = None,
    raised_by: str = ENGINE,
    options: tuple[Option, ...] | None = None,
    defaulted: bool = False,
) -> None:
    """Ask about a verdict, or let a learned rule answer (§8)."""
    run = turn.run(run_id)
    verdict = kind != "agent"
    silent = entries.parks(run, kind, index, verdict) == "none"
    offered = options or ((texts.option("seen"),) if silent else texts.options(kind, run.spec))
    work, step = run.spec.work(index), turn.last_step(run_id, index)
    made = learn.pattern(run.workflow, work, kind, step.item, [option.id for option in offered], cause)
    key = learn.cause_key(made)
    rule = _rule_for(turn, step, key, offered)
    if rule is not None and rule.cause_key == key and learn.answers_itself(run, index, rule, cause):
        _answer_by_rule(turn, run_id, index, rule, kind, cause, key, own=kind == "agent" and not defaulted)
        return
    entries.open_entry(
        turn,
        run_id,
        index,
        kind,
        cause=cause,
        target=target,
        raised_by=raised_by,
        options=offered,
        defaulted=defaulted,
        verdict=verdict,
        rule=rule,
        recommended=rule is not None and rule.state == "active",
        hold={"at": "verdict"},
    )
    if silent:
        close_item(turn, run_id, index)


def _rule_for(turn: Turn, step: Step, key: str, offered: tuple[Option, ...]) -> Rule | None:
    """The rule that an entry names: one whose attempt has just failed, else the one of this cause."""
    learning = turn.world.learning
    began = learning.rules.get(step.rule or "")
    if began is not None and began.state == "suspended" and step.result != "escalated":
        return began
    rule = learning.rule_of(key)
    if rule is not None and rule.state == "active" and all(option.id != rule.option_id for option in offered):
        return None
    return rule


def _answer_by_rule(
    turn: Turn, run_id: str, index: int, rule: Rule, kind: Kind, cause: str | None, key: str, own: bool
) -> None:
    """Do what the rule says. `own`: the option is the agent's, whatever its name: it is what the next attempt hears."""
    step = turn.last_step(run_id, index)
    then = None
    if rule.option_id == "retry" and not own:
        then = {"why": "retry", "attempt": step.attempt + 1, "resumes": 0, "rule": rule.id}
    elif rule.option_id != "skip" or own:
        decision = {"option_id": rule.option_id, "args": rule.args, "note": None}
        then = {
            "why": "answer",
            "attempt": step.attempt + 1,
            "resumes": 0,
            "rule": rule.id,
            "context": {"decision": decision},
        }
    made_id = spawn_id(run_id, index, step.attempt, step.resumes)
    told = notice(made_id, CONSOLE, "info", "AUTO_RESOLVED", run_id, None, rule=rule.id)
    turn.emit(
        run_id,
        "rule_fired",
        rule=rule.id,
        index=index,
        attempt=step.attempt,
        option_id=rule.option_id,
        kind=kind,
        cause=cause,
        cause_key=key,
        then=then,
        notices=[told],
    )
    turn.emit(LEARNING_STREAM, "rule_used", rule=rule.id, run=run_id)
    if then is None:
        close_item(turn, run_id, index, "skipped", f"rule:{rule.id}")


def close_item(
    turn: Turn,
    run_id: str,
    index: int,
    result: str | None = None,
    by: str | None = None,
    cursor: int | None = None,
) -> None:
    """Close an item; in a chain this is what lets the next step start, or what ends the chain (`never`)."""
    run = turn.run(run_id)
    work = run.spec.work(index)
    ended = result or run.result(index)
    fields: dict[str, Any] = {"index": index, "result": result, "by": by}
    if work.after == "never" and ended == "success":
        cursor = run.total
    if cursor is not None:
        fields["cursor"] = cursor
    if result == "success" and by == "human":
        fields.update(resolved=True, breaker=texts.breaker_key(work))
    turn.emit(run_id, "item_closed", **fields)
