"""The map of the ecosystem, and who names itself in it (docs/specs/governance.md §7)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.finding import Refused
from core.governance import members, rules, view
from tests.unit.core.governance.samples import data

SHIPPED = json.loads(members.shipped()[1])


def changed(*rows: Any) -> dict[str, Any]:
    return {**SHIPPED, "members": list(rows)}


def told(document: Any) -> list[str]:
    return [item.code for item in rules.members("m.json", data(document))[2]]


def test_the_shipped_map_is_the_specification() -> None:
    text = (Path(__file__).parents[4] / "docs" / "specs" / "governance.md").read_text("utf-8")
    rows = [line.strip("| \n").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    table = {row[0]: row[1:] for row in rows if len(row) == 5}
    made = members.shipped_members()
    assert [item.component for item in made.members] == list(rules.COMPONENTS)
    for item in made.members:
        assert table[item.component] == [item.owns, ", ".join(item.emits), ", ".join(item.consumes), item.must]


def test_names_and_number() -> None:
    rows = SHIPPED["members"]
    assert told(SHIPPED) == []
    assert told(changed(*reversed(rows))) == []
    assert told(changed(*rows[:-1])) == ["membership_count", "membership_mismatch"]
    assert told(changed(*rows[:-1], rows[0])) == ["membership_duplicate", "membership_mismatch"]
    assert told(changed(*rows, rows[0])) == ["membership_count", "membership_duplicate"]
    assert told(changed({**rows[0], "component": "Project agents"}, *rows[1:])) == ["membership_mismatch"]
    assert told(changed({**rows[0], "emits": [""]}, *rows[1:])) == ["field_invalid"]
    assert told({**SHIPPED, "goal_id": "x"}) == ["field_invalid"]


def test_a_cell_cannot_break_the_table() -> None:
    rows = SHIPPED["members"]
    made, _, _ = rules.members(
        "m",
        data(
            changed(
                {**rows[0], "owns": "a|b\r\nc\u2028d", "emits": [], "consumes": ["x|", "y"], "must": "m\n"}, *rows[1:]
            )
        ),
    )
    assert made is not None
    text = view.table(made)
    assert text.splitlines()[2].startswith("| project agents | a\\|b c d | none | x\\|, y | m  |")
    assert text.startswith("| Component | Owns | Emits | Consumes | MUST |\n| --- | --- | --- | --- | --- |\n")
    assert text.count("\n") == 18


def test_the_graph() -> None:
    graph = members.shipped_graph()
    nodes = [node for group in graph.groups for node in group.nodes]
    assert len(nodes) == len(set(nodes)) == 8
    assert set(nodes) <= set(rules.COMPONENTS)
    assert {name for edge in graph.edges for name in (edge.from_, edge.to)} == set(nodes)
    assert [edge for edge in graph.edges if edge.style == "dotted"] == graph.edges[:1]
    assert [edge.label is None for edge in graph.edges] == [True] + [False] * 10
    drawn = view.mermaid(graph)
    assert drawn.startswith("flowchart TB\n")
    assert "  ponytail -.-> shame\n" in drawn
    assert '  shame -->|"failed.triage.code"| triage-error\n' in drawn
    tree = view.tree(graph)
    assert "turn\n  shame\n    ├─▶ triage-error  failed.triage.code\n" in tree
    assert "  ponytail\n    └┄▷ shame\n" in tree


def skill(path: Path, text: str) -> None:
    path.mkdir(parents=True, exist_ok=True)
    (path / "SKILL.md").write_text(text, "utf-8")


def scan(folder: Path) -> members.Scan:
    return members.scan(folder, members.shipped_members())


TAU = """\
# Tau

## Ecosystem

Produces:
- node receipts
- `tau.agent_handoff.v2`
Consumes: DAG contracts, tau.dag_contract.v1
**Boundary events:** acceptance

## Use

Produces: nothing
"""


def test_a_member_and_a_candidate(tmp_path: Path) -> None:
    skill(
        tmp_path / "a" / "tau",
        TAU,
    )
    skill(tmp_path / "b", '---\nname: "press-watch"\ndescription: x\n---\n## Ecosystem ##\n- Produces: shop.note.v1\n')
    skill(tmp_path / "c", "# No section\n")
    made = scan(tmp_path)
    assert not made.findings
    assert [item.as_json() for item in made.members] == [
        {
            "path": "a/tau/SKILL.md",
            "component": "tau",
            "produces": ["node receipts", "tau.agent_handoff.v2"],
            "consumes": ["DAG contracts", "tau.dag_contract.v1"],
            "boundaries": ["acceptance"],
            "missing": [],
        }
    ]
    assert [item.as_json() for item in made.candidates] == [
        {
            "path": "b/SKILL.md",
            "component": "press-watch",
            "produces": ["shop.note.v1"],
            "consumes": [],
            "boundaries": [],
            "missing": ["consumes", "boundaries"],
        }
    ]


def test_an_empty_list_is_one_when_it_says_so(tmp_path: Path) -> None:
    skill(
        tmp_path / "x",
        "## Ecosystem\nProduces: none\nConsumes: nothing.\nBoundary events:\n\nSome prose.\n- not an item\n",
    )
    assert scan(tmp_path).candidates[0].as_json() == {
        "path": "x/SKILL.md",
        "component": "x",
        "produces": [],
        "consumes": [],
        "boundaries": [],
        "missing": [],
    }


@pytest.mark.parametrize(
    ("component", "section", "denied"),
    [
        ("ask", "Produces: tau.dag_contract.v1\nConsumes: tau.agent_handoff.v1", []),
        ("ask", "Produces: tau.agent_handoff.v2", ["tau.agent_handoff.v2"]),
        ("ask", "Produces: pi.receipt_envelope.v1, own.thing.v3", []),
        ("shame", "Produces: shame.immutable_goal.v1, pi.agent_status.v1", ["pi.agent_status.v1"]),
        (
            "ponytail",
            "Produces: pi.receipt_envelope.v1\nConsumes: tau.dag_contract.v1",
            ["pi.receipt_envelope.v1", "tau.dag_contract.v1"],
        ),
        ("Memory", "Boundary events: pi.receipt_envelope.v1", ["pi.receipt_envelope.v1"]),
        ("memory", "Produces: pi.receipt_envelope.v1", []),
    ],
)
def test_schemas_that_the_table_denies(component: str, section: str, denied: list[str], tmp_path: Path) -> None:
    skill(tmp_path / component, f"## Ecosystem\n{section}\n")
    made = scan(tmp_path)
    assert [item.code for item in made.findings] == ["membership_schema_denied"] * len(denied)
    assert all(schema in item.cause for schema, item in zip(denied, made.findings, strict=True))
    assert all(item.where == f"{component}/SKILL.md" for item in made.findings)


def test_links_are_not_followed_and_a_missing_folder_is_refused(tmp_path: Path) -> None:
    skill(tmp_path / "out", "## Ecosystem\n")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
    made = scan(tmp_path / "in")
    assert made == members.Scan((), (), ())
    with pytest.raises(Refused):
        scan(tmp_path / "none")
