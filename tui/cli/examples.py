"""An example or two for each verb and sub-verb, read only when a help text is printed; a test parses every one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_INIT = (
    "collab init --folder cache --participant server --participant reader "
    '--objective "Decide the cache" --completion "Decisions are explicit"'
)
_PLAN = "collab ledger --plan .dwp/plans/PLAN_x_y"
_GOAL = (
    'collab goal new --goal-id cache --outcome "The cache is decided" --proof-command "make check" '
    '--proof-expected "0 failed" --criterion "All tests pass" --scope core/ --drift "No new service" '
    '--retry-budget 2 --stop-condition "Two failures of one cause" --out goal.json'
)
_PROMOTE = (
    "collab triage promote acp_unclassified_2166f4b6 --code acp_peer_unreachable --layer acp "
    '--match "connection refused" --cause "The peer takes no connection" --no-next-command'
)
_COMPLETE = 'collab complete --folder cache --as server --outcome proceed --rationale "It fits" --next "Open a change"'
_WRAP = (
    "collab envelope wrap payload.json --receipt-id b --producer checker --parent receipts/a.json "
    '--goal-hash "$(collab goal hash goal.json)"'
)
_LAUNCH = (
    f"{_PLAN} delegate launch --task T-one --prompt-file prompt.md --dry-run "
    '--json \'{"delegation_id": "one-1", "via": "agentkit", "transport": "headless"}\''
)
_COLLECT = (
    f"{_PLAN} delegate collect --task T-one "
    '--json \'{"delegation_id": "one-1", "state": "completed", "result_path": "results/keys.md"}\''
)
_RETURN = (
    'collab signal --json \'{"from": "porter", "signal": "RETURN", '
    '"in_reply_to": "deploy-batch-20260401T080000Z-0001/0/1", "payload": {"result": "success"}}\''
)

EXAMPLES: Mapping[str, Sequence[str]] = {
    "": ("collab", "collab work notes --as reader"),
    "init": (_INIT, f"{_INIT} --primary-deliverable-type adr"),
    "append": ('collab append --folder cache --participant server --event blocked --summary "No host" --reply-to 4',),
    "next": (
        "collab next --folder cache --participant reader",
        "collab next --folder cache --participant reader -o json",
    ),
    "wait": ("collab wait --folder cache --participant reader --timeout 600",),
    "validate": ("collab validate --folder cache", "collab validate --folder cache --receipts -o json"),
    "draft": ("collab draft --folder cache --as server --file adr.md",),
    "submit": ("collab submit --folder cache --as server --file proposal.md --wait",),
    "review": ('collab review --folder cache --as reader --position "In favour" --change "Name the eviction policy"',),
    "revise": ("collab revise --folder cache --as server --file - < proposal.md",),
    "classify": (
        'collab classify --folder cache --as server --resolve "Key layout" --defer "Sizes :: defaults will do"',
    ),
    "propose": ("collab propose --folder cache --as server --file decisions.md",),
    "accept": ("collab accept --folder cache --as reader --wait",),
    "freeze": ("collab freeze --folder cache --as server",),
    "ready": ("collab ready --folder cache --as server --tick-all",),
    "complete": (_COMPLETE,),
    "block": ('collab block --folder cache --as server --reason "No host until Monday"',),
    "show": ("collab show --folder cache", "collab show --folder cache --doc readiness.md --at 4"),
    "log": ("collab log --folder cache", "collab log --folder cache --story 5"),
    "diff": (
        "collab diff --folder cache --as reader --since-my-review",
        "COLUMNS=120 collab diff --folder cache --since 3 --until 6 --side-by-side",
    ),
    "repair": ("collab repair --folder cache", "collab repair --plan .dwp/plans/PLAN_x_y"),
    "new-round": ("collab new-round --from cache --folder cache-2",),
    "deliverable": ("collab deliverable add plan.md --type implementation-plan --folder cache --as server",),
    "skill": ("collab skill install .agents/skills/collab",),
    "prompt": ("collab prompt --folder cache --as reader",),
    "list": ("collab list", "collab list work notes -o json"),
    "inbox": ("collab inbox --as reader", "collab inbox --snooze acp-38687a671ac0-7-unblock --for 2h"),
    "triage": ("collab triage classify --text 'disk full'", "collab triage observe --receipt - < error.log"),
    "triage classify": ("collab triage classify --text 'disk full'", "collab triage classify --receipt - < error.log"),
    "triage observe": ("collab triage observe --receipt error.log --layer workflow",),
    "triage list": ("collab triage list -o json",),
    "triage promote": (_PROMOTE,),
    "triage alias": ("collab triage alias acp_unclassified_2166f4b6 output_unwritable",),
    "triage catalog": ("collab triage catalog --layer acp", "collab triage catalog --filter receipt"),
    "envelope": ("collab envelope resolve receipts/acp-1.json --receipts receipts",),
    "envelope wrap": (
        "collab envelope wrap payload.json --receipt-id hand-over-1 --producer checker --out receipts/hand-over-1.json",
        _WRAP,
    ),
    "envelope validate": ("collab envelope validate receipts/acp-1.json",),
    "envelope resolve": ("collab envelope resolve receipts/acp-1.json --receipts receipts",),
    "status": ("collab status check answer.md --mutating",),
    "status check": (
        "collab status check answer.md --mutating",
        "collab status check --ledger ledger.json < answer.md",
    ),
    "status validate": ("collab status validate status.json",),
    "status compile": ("collab status compile status.json",),
    "status render": ("collab status render receipts/status.json",),
    "members": ("collab members table", "collab members graph --format mermaid"),
    "members validate": ("collab members validate members.json",),
    "members table": ("collab members table",),
    "members graph": ("collab members graph --format mermaid",),
    "members scan": ("collab members scan .agents/skills",),
    "goal": ("collab goal validate goal.json",),
    "goal validate": ("collab goal validate goal.json",),
    "goal hash": ("collab goal hash goal.json", "collab goal hash contract.json --rule canonical"),
    "goal new": (_GOAL,),
    "ledger": (f"{_PLAN} start --task T-one", f"{_PLAN} inspect -o json"),
    "ledger materialize": (f"{_PLAN} materialize --contract draft.json --authority ana",),
    "ledger start": (f"{_PLAN} start --task T-one",),
    "ledger gate": (
        f'{_PLAN} gate --task T-one --criterion AC-one --json \'["grep", "-q", "owner", "results/keys.md"]\'',
        f"{_PLAN} gate --task T-one --criterion AC-one --json '\"grep -q owner results/*.md\"' --timeout 60",
    ),
    "ledger complete": (f"{_PLAN} complete --task T-one",),
    "ledger signoff": (f"{_PLAN} signoff --criterion AC-two --evidence-path results/alarm.md --authority ana",),
    "ledger append": (
        f'{_PLAN} append --type observation --trust asserted --json \'{{"statement": "INV-one: pass"}}\'',
    ),
    "ledger roll": (f"{_PLAN} roll",),
    "ledger inspect": (f"{_PLAN} inspect", f"{_PLAN} inspect --until 12 -o json"),
    "ledger verify": (f"{_PLAN} verify --receipts",),
    "ledger delegate": (f"{_PLAN} delegate observe", f"{_PLAN} delegate launch --help"),
    "ledger delegate launch": (_LAUNCH,),
    "ledger delegate observe": (f"{_PLAN} delegate observe --task T-one",),
    "ledger delegate collect": (_COLLECT,),
    "ledger delegate cancel": (f'{_PLAN} delegate cancel --task T-one --json \'{{"delegation_id": "one-1"}}\'',),
    "addons": ("collab addons list --detect", "collab addons enable agentkit --version v0.1.1"),
    "addons list": ("collab addons list --detect",),
    "addons enable": ('collab addons enable agentkit --version v0.1.1 --note "for the measuring"',),
    "addons disable": ("collab addons disable agentkit",),
    "workflow": (
        "collab workflow check workflows/deploy-batch.yml",
        "collab workflow simulate workflows/deploy-batch.yml --script script.yml",
        "collab workflow start deploy-batch --mode assisted --as ana",
    ),
    "workflow check": ("collab workflow check workflows/deploy-batch.yml",),
    "workflow start": (
        "collab workflow start deploy-batch --mode assisted --as ana",
        "collab workflow start deploy-batch --mode swarm --grant --as ana",
    ),
    "workflow tick": ("collab workflow tick --root work",),
    "workflow run": ("collab workflow run", "collab workflow run --allow-commands --interval 2s"),
    "workflow status": ("collab workflow status", "collab workflow status deploy-batch-20260401T080000Z-0001 -o json"),
    "workflow abort": ('collab workflow abort deploy-batch-20260401T080000Z-0001 --note "Wrong list" --as ana',),
    "workflow simulate": ("collab workflow simulate workflows/deploy-batch.yml --script script.yml -o json",),
    "signal": (
        "collab signal --json - < packet.json",
        _RETURN,
    ),
    "escalation": ("collab escalation list", "collab escalation decide esc-20260401-0001 retry --as ana"),
    "escalation list": ("collab escalation list --all -o json",),
    "escalation show": ("collab escalation show esc-20260401-0001",),
    "escalation decide": (
        'collab escalation decide esc-20260401-0001 retry --note "The host is back" --as ana',
        'collab escalation decide esc-20260401-0001 --respond "Use the second host" --as ana',
        "collab escalation decide esc-20260401-0001 --defer 2h --as ana",
    ),
    "escalation ack": ("collab escalation ack esc-20260401-0001 --as ana",),
    "proposal": ("collab proposal list", "collab proposal approve prop-20260401-001 --as ana"),
    "proposal list": ("collab proposal list -o json",),
    "proposal approve": ("collab proposal approve prop-20260401-001 --option skip --as ana",),
    "proposal reject": (
        "collab proposal reject prop-20260401-001 --as ana",
        "collab proposal reject rule-20260401-001 --as ana",
    ),
    "demo": ("collab demo", "collab demo --headless", "collab demo --speed 4"),
    "completion": ('eval "$(collab completion bash)"',),
}
"""The words of a verb to lines that can be pasted."""
