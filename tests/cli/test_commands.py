"""The command line does its work, says what is wrong in one line, and writes nothing when it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from dicoflex import cli
from dicoflex.answers.counterfactuals import Counterfactuals
from dicoflex.cli import messages
from dicoflex.explainer import load
from dicoflex.learning import surrogate
from dicoflex.table import subsample as streaming
from dicoflex.table.schema import Schema

ROWS = 200


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 70, ROWS),
            "zone": rng.choice(["01", "02", "NA"], ROWS),
            "job": rng.choice(["cook", "nurse"], ROWS),
            "rate": rng.normal(size=ROWS).round(3),
        }
    )
    return frame.assign(answer=np.where(frame["age"] + 10 * (frame["job"] == "nurse") > 45, "yes", "no"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data.csv, rows.csv, schema.json and the model m.dicoflex fitted on them."""
    place = tmp_path_factory.mktemp("cli")
    table().to_csv(place / "data.csv", index=False)
    table().drop(columns="answer").head(4).to_csv(place / "rows.csv", index=False)
    # The zone "NA" is a word and no missing value; a schema says so.
    schema = Schema.infer(table().drop(columns="answer"))
    (place / "schema.json").write_text(schema.to_json())
    # One thread: on a busy machine, threads that wait for each other take longer than the work itself.
    with pytest.MonkeyPatch.context() as patch, threadpool_limits(1):
        patch.setattr(surrogate, "STEPS", 200)
        code = fit(
            place,
            "--schema",
            str(place / "schema.json"),
            "--max-seconds",
            "2",
            "--seed",
            "0",
            "--quiet",
            "--no-coherence",
        )
    assert code == 0
    return place


def fit(place: Path, *options: str, data: str = "data.csv", out: str = "m.dicoflex") -> int:
    return cli.main(["fit", str(place / data), "--label", "answer", "-o", str(place / out), *options])


def explain(place: Path, *options: str, rows: str = "rows.csv", target: str = "yes") -> int:
    return cli.main(
        ["explain", str(place / "m.dicoflex"), str(place / rows), "--target", target, "--seed", "1", *options]
    )


def test_fit_keeps_levels_that_look_like_numbers_or_missing_values(folder: Path) -> None:
    model = load(folder / "m.dicoflex")
    assert model.schema_["zone"].levels == ("01", "02", "NA")
    assert not model.schema_["zone"].missing
    assert list(model.classes_) == ["no", "yes"]


def test_fit_says_what_it_did_and_what_comes_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surrogate, "STEPS", 50)
    table().drop(columns="zone").assign(code=[f"x{i}" for i in range(ROWS)]).to_csv(tmp_path / "data.csv", index=False)
    assert fit(tmp_path, "--drop", "code", "--max-seconds", "1", "--seed", "0") == 0
    said = capsys.readouterr().err
    assert "learned from 200 rows" in said
    assert f"dicoflex explain {tmp_path / 'm.dicoflex'} ROWS.csv --target WANTED" in said
    assert "the outcome that they should get, one of no, yes" in said
    # Neither the bad outcome nor the whole training table is suggested.
    assert "--target yes" not in said
    assert "data.csv" not in said
    assert load(tmp_path / "m.dicoflex").schema_.names == ["age", "job", "rate"]


def test_explain_prints_a_readable_view(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(folder, "--n", "2") == 0
    out = capsys.readouterr().out
    assert "row 0 → yes" in out
    assert "age = " in out


def test_explain_writes_csv_with_the_frozen_columns_unchanged(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "found.csv"
    assert explain(folder, "-n", "2", "-p", "0.5", "--freeze", "job,zone", "--out", str(path)) == 0
    found = pd.read_csv(path, dtype={"zone": str}, keep_default_na=False)
    before = table().loc[found["row"]].reset_index(drop=True)
    assert len(found) > 0
    assert found["job"].equals(before["job"].astype(found["job"].dtype))
    assert found["zone"].tolist() == before["zone"].tolist()
    assert found.columns[:6].tolist() == ["row", "cf", "age", "zone", "job", "rate"]


def test_the_same_seed_writes_the_same_file(folder: Path, tmp_path: Path) -> None:
    paths = [tmp_path / "one.csv", tmp_path / "two.csv"]
    assert [explain(folder, "--out", str(path)) for path in paths] == [0, 0]
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_explain_writes_json(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(folder, "--n", "2", "--out", str(tmp_path / "found.json")) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    assert len(found["queries"]) == 4
    assert found["settings"]["n"] == 2
    said = capsys.readouterr()
    assert "for 4 rows to" in said.err
    assert said.out == ""


def test_explain_writes_html_with_pictures(folder: Path, tmp_path: Path) -> None:
    assert explain(folder, "--n", "2", "--pictures", "--out", str(tmp_path / "found.html")) == 0
    page = (tmp_path / "found.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "data:image/png;base64," in page


def test_the_label_column_is_left_out_and_an_id_column_names_the_rows(folder: Path, tmp_path: Path) -> None:
    table().head(3).assign(who=["007", "008", "009"]).to_csv(tmp_path / "rows.csv", index=False)
    asked = ["explain", str(folder / "m.dicoflex"), str(tmp_path / "rows.csv"), "--target", "yes", "--id", "who"]
    assert cli.main([*asked, "--out", str(tmp_path / "found.csv")]) == 0
    assert set(pd.read_csv(tmp_path / "found.csv", dtype={"row": str})["row"]) <= {"007", "008", "009"}


def test_parquet_in_and_out(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surrogate, "STEPS", 50)
    frame = table().astype({"zone": "category", "age": "int16"})
    frame.to_parquet(tmp_path / "data.parquet")
    assert fit(tmp_path, "--max-seconds", "1", "--seed", "0", "--quiet", data="data.parquet") == 0
    assert explain(tmp_path, "--n", "2", "--out", str(tmp_path / "found.parquet"), rows="data.parquet") == 0
    found = pd.read_parquet(tmp_path / "found.parquet")
    features = frame.columns.drop("answer")
    assert found[features].dtypes.equals(frame[features].dtypes)
    assert found.index.names == ["row", "cf"]


def test_a_shortfall_is_told(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pd.DataFrame({"age": [18], "zone": ["01"], "job": ["cook"], "rate": [0.1]}).to_csv(
        tmp_path / "one.csv", index=False
    )
    asked = ["explain", str(folder / "m.dicoflex"), str(tmp_path / "one.csv"), "--target", "yes", "--n", "3"]
    assert cli.main([*asked, "--freeze", "age,rate", "--out", str(tmp_path / "found.csv")]) == 0
    assert "1 row got fewer than 3: " in capsys.readouterr().err


ASKED = [
    *("--increase", "age", "--range", "age=+0:+40", "--range", "rate=-2:2", "--range", "rate=-50%:+50%"),
    *("--allow", "job=nurse", "--forbid", "zone=NA", "--transition", "zone=01>02", "--max-changes", "2"),
    *("--rule", "if job == 'nurse' then age >= 20", "--step", "age=5", "--cost", "job=2", "--cost", "age=0.1/unit"),
    *("--max-cost", "5"),
]


def test_every_flag_binds_the_answers_and_is_on_record(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    assert explain(folder, *ASKED, "--out", str(path)) == 0
    record = json.loads(path.read_text())
    assert record["settings"]["constraints"] == {
        "ranges": {"age": {"delta": [0, 40]}, "rate": [[-2, 2], {"relative": [-0.5, 0.5]}]},
        "increase": ["age"],
        "allowed": {"job": ["nurse"]},
        "forbidden": {"zone": ["NA"]},
        "transitions": {"zone": {"01": ["02"]}},
        "max_changes": 2,
        "rules": ["if job == 'nurse' then age >= 20"],
        "steps": {"age": 5},
        "cost": {"job": 2, "age": {"per_unit": 0.1}},
        "max_cost": 5,
    }
    answers = [answer for query in record["queries"] for answer in query["counterfactuals"]]
    assert answers
    assert all(len(answer["changes"]) <= 2 for answer in answers)
    moves = [change for answer in answers for change in answer["changes"] if change["feature"] == "age"]
    assert moves
    assert all(move["after"] > move["before"] and move["after"] % 5 == 0 for move in moves)
    assert all(verdict["holds"] for verdict in record["verdicts"])


def test_a_file_of_constraints_and_the_flags_bind_together(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "wish.json").write_text('{"frozen": ["zone"], "max_changes": 3}')
    asked = ["--constraints", str(tmp_path / "wish.json"), "--max-changes", "1", "--freeze", "rate"]
    assert explain(folder, *asked, "--out", str(tmp_path / "found.json")) == 0
    settings = json.loads((tmp_path / "found.json").read_text())["settings"]
    assert settings["constraints"] == {"frozen": ["zone", "rate"], "max_changes": 1}
    assert settings["p"] == 0.01  # few changes are asked for, so that the density is asked for few as well


def test_strict_forces_values_inside_a_range(folder: Path, tmp_path: Path) -> None:
    asked = ["--range", "age=50:60", "--strict", "--out", str(tmp_path / "found.csv")]
    assert explain(folder, *asked) == 0
    ages = pd.read_csv(tmp_path / "found.csv")["age"]
    assert len(ages) > 0
    assert ages.between(50, 60).all()


def test_verify_prints_a_verdict_for_each_constraint(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(folder, "-n", "2", "--range", "age=30:60", "--increase", "age", "--verify") == 0
    said = capsys.readouterr().err
    for words in ("range age 30 to 60", "increase age", "schema", "record", ": 0 violations"):
        assert words in said


def test_verify_ends_with_its_own_exit_code_if_an_answer_breaks_a_constraint(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(found: Counterfactuals, rows: pd.DataFrame | None = None) -> pd.DataFrame:
        verdicts = pd.DataFrame({"row": [0, 0], "cf": [0, 0], "constraint": ["frozen age", "schema"]})
        return verdicts.assign(holds=[False, True])

    monkeypatch.setattr(Counterfactuals, "verify", broken)
    out = str(tmp_path / "found.csv")
    assert explain(folder, "--out", out) == 0
    assert explain(folder, "--verify", "--out", out) == 4
    assert "row 0, counterfactual 0: frozen age does not hold" in capsys.readouterr().err


def test_what_no_row_can_meet_is_refused_and_what_some_cannot_is_told(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = table().drop(columns="answer").head(2).assign(age=[36, 69], job="nurse")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    asked = ["explain", str(folder / "m.dicoflex"), str(tmp_path / "rows.csv"), "--target", "no", "--strict"]
    asked += ["--n", "1", "--range", "age=+5:+9", "--out", str(tmp_path / "found.csv")]
    assert cli.main(asked) == 0
    assert "1 row got fewer than 1: " in capsys.readouterr().err
    rows.tail(1).to_csv(tmp_path / "rows.csv", index=False)
    assert cli.main(asked) == 2
    refused(capsys, "age")


def test_many_reasons_are_told_in_part(capsys: pytest.CaptureFixture[str]) -> None:
    short = pd.DataFrame({"row": range(5), "wanted": 3, "got": 0, "reason": ["a", "b", "a", "c", "d"]})
    messages.say_shortfall(SimpleNamespace(shortfall=short, status=(), short=None), 3)
    assert capsys.readouterr().err.splitlines() == [
        "5 rows got fewer than 3: a; b; c",
        "and 1 other reason; --out found.json lists them by row",
    ]


def test_constraints_of_the_schema_bind_are_shown_and_can_be_lifted(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surrogate, "STEPS", 50)
    preset = tmp_path / "preset.json"
    preset.write_text('{"increase": ["age"], "frozen": ["zone"], "rules": ["age <= 80"]}')
    options = ["--schema", str(folder / "schema.json"), "--constraints", str(preset)]
    model = str(tmp_path / "m.dicoflex")
    asked = ["fit", str(folder / "data.csv"), "--label", "answer", *options, "-o", model]
    assert cli.main([*asked, "--max-seconds", "1", "--seed", "0", "--quiet"]) == 0
    capsys.readouterr()
    assert cli.main(["inspect", model]) == 0
    shown = capsys.readouterr().out
    for words in ("age may only increase", "--override increase:age", "--override 'rules:age <= 80'"):
        assert words in shown
    ask = ["explain", model, str(folder / "rows.csv"), "--target", "no", "--seed", "0"]
    assert cli.main([*ask, "--out", str(tmp_path / "bound.json")]) == 0
    assert cli.main([*ask, "--override", "age,rules:age <= 80", "--out", str(tmp_path / "free.json")]) == 0
    bound, free = (json.loads((tmp_path / f"{n}.json").read_text())["settings"] for n in ("bound", "free"))
    assert bound["constraints"] == {"frozen": ["zone"], "increase": ["age"], "rules": ["age <= 80"]}
    assert free["constraints"] == {"frozen": ["zone"], "override": ["age", "rules:age <= 80"]}


def test_schema_writes_constraints_along_and_checks_them(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    preset = tmp_path / "preset.json"
    preset.write_text('{"increase": ["age"]}')
    asked = ["schema", str(folder / "data.csv"), "--label", "answer", "--constraints", str(preset)]
    assert cli.main([*asked, "-o", str(tmp_path / "schema.json")]) == 0
    assert "age may only increase" in capsys.readouterr().out
    assert Schema.from_json(tmp_path / "schema.json").constraints.increase == ("age",)
    preset.write_text('{"increase": ["job"]}')
    assert cli.main(asked) == 2
    refused(capsys, "increase 'job': it is categorical and has no order")


def test_schema_shows_the_columns_and_writes_json_that_fit_reads(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["schema", str(folder / "data.csv"), "--label", "answer", "-o", str(tmp_path / "schema.json")]
    assert cli.main([*asked, "--kind", "zone=categorical", "--order", "job=nurse,cook"]) == 0
    assert "nurse < cook" in capsys.readouterr().out
    described = Schema.from_json(tmp_path / "schema.json")
    assert described.names == ["age", "zone", "job", "rate"]
    # Without a schema the word NA is a missing value, as everywhere in pandas.
    assert described["zone"].levels == ("01", "02")
    assert described["zone"].missing


def test_inspect_tells_the_facts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["inspect", str(folder / "m.dicoflex")]) == 0
    out = capsys.readouterr().out
    for word in ("checksum", "mixed", "no, yes", "answer", "200 rows", "categorical", "01, 02, NA"):
        assert word in out
    assert cli.main(["inspect", str(folder / "m.dicoflex"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["classes"] == ["no", "yes"]


def test_help_and_inspect_start_without_heavy_libraries(folder: Path) -> None:
    code = (
        "import sys; from dicoflex.cli import main; main(['--help']);"
        "print('help', sorted({'torch', 'pandas', 'sklearn', 'scipy'} & set(sys.modules)));"
        f"main(['inspect', {str(folder / 'm.dicoflex')!r}]);"
        "print('inspect', sorted({'torch', 'sklearn', 'zuko'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "help []" in run.stdout
    assert "inspect []" in run.stdout


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("dicoflex ")


# Refusals: exit code, words of the message, arguments after the command's files.
EXPLAIN_REFUSALS = {
    "unknown frozen feature": (2, "'agee' is unknown; did you mean 'age'?", ["--freeze", "agee"]),
    "unknown target": (2, "target 'maybe' is unknown", ["--target", "maybe"]),
    "p too small": (2, "trained range", ["--p", "0.001"]),
    "n below one": (2, "n must be a whole number of at least 1", ["--n", "0"]),
    "unknown ending": (2, "use .csv, .json, .html or .parquet", ["--out", "found.xlsx"]),
    "no folder": (2, "make it first", ["--out", "nowhere/found.csv"]),
    "unknown id column": (2, "id column 'who' is unknown", ["--id", "who"]),
    "unknown dropped column": (2, "column 'who' is unknown", ["--drop", "who"]),
    "not a number": (2, "'--n'", ["--n", "many"]),
    "malformed range": (2, "--range 'age' must read feature=", ["--range", "age"]),
    "unknown level": (2, "allowed 'job': value 'nurs' is unknown; did you mean 'nurse'?", ["--allow", "job=nurs"]),
    "no constraints file": (2, "absent.json can't be read", ["--constraints", "absent.json"]),
    "rule with a typo": (2, "feature 'agee' is unknown; did you mean 'age'?", ["--rule", "agee > 30"]),
    "nothing to override": (2, "override 'age' names no constraint of the schema", ["--override", "age"]),
    "contradiction": (2, "increase and decrease both name 'age'", ["--increase", "age", "--decrease", "age"]),
}


@pytest.mark.parametrize("name", EXPLAIN_REFUSALS)
def test_explain_refuses(
    name: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, words, options = EXPLAIN_REFUSALS[name]
    monkeypatch.chdir(tmp_path)
    assert explain(folder, *options) == code
    refused(capsys, words)
    assert list(tmp_path.iterdir()) == []


ROW_REFUSALS = {
    "unseen category": ("never seen in training", {"job": "pilot"}),
    "extra column": ("--drop 'salary'", {"salary": 1}),
    "text for a number": ("not numbers", {"age": "old"}),
    "missing value": ("has missing values", {"job": None}),
}


@pytest.mark.parametrize("name", ROW_REFUSALS)
def test_explain_refuses_rows(name: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, values = ROW_REFUSALS[name]
    rows = table().drop(columns="answer").head(2).assign(**values)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    asked = ["explain", str(folder / "m.dicoflex"), str(tmp_path / "rows.csv"), "--target", "yes"]
    assert cli.main([*asked, "--handle-unknown", "error", "--out", str(tmp_path / "found.csv")]) == 2
    refused(capsys, words)
    assert not (tmp_path / "found.csv").exists()


def test_explain_answers_rows_with_values_that_were_never_seen(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = table().drop(columns="answer").head(3)
    rows.loc[1, "job"] = "pilot"
    rows.to_csv(tmp_path / "rows.csv", index=False)
    asked = ["explain", str(folder / "m.dicoflex"), str(tmp_path / "rows.csv"), "--target", "yes", "--n", "2"]
    assert cli.main([*asked, "--seed", "0", "--out", str(tmp_path / "found.csv"), "--verify"]) == 0
    found = pd.read_csv(tmp_path / "found.csv")
    assert (found["row"] == 1).any()
    assert "pilot" not in set(found["job"])
    capsys.readouterr()
    assert cli.main([*asked, "--freeze", "job"]) == 0
    assert "job 'pilot' was never seen in training" in capsys.readouterr().err


def test_explain_refuses_a_missing_column(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table()[["age", "zone", "job"]].to_csv(tmp_path / "rows.csv", index=False)
    assert cli.main(["explain", str(folder / "m.dicoflex"), str(tmp_path / "rows.csv"), "--target", "yes"]) == 2
    refused(capsys, "lacks the column 'rate'")


def test_files_that_are_no_models_are_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = (folder / "m.dicoflex").read_bytes()
    (tmp_path / "cut.dicoflex").write_bytes(whole[: len(whole) // 2])
    for path in (tmp_path / "absent.dicoflex", folder / "data.csv", tmp_path / "cut.dicoflex"):
        assert cli.main(["explain", str(path), str(folder / "rows.csv"), "--target", "yes"]) == 3
        refused(capsys, str(path))
    assert cli.main(["inspect", str(folder / "data.csv")]) == 3
    refused(capsys, "not a dicoflex model file")


FIT_REFUSALS = {
    "no such file": ("is not there", "absent.csv", []),
    "unknown ending": ("use .csv, .csv.gz or .parquet", "data.txt", []),
    "no such label": ("label column 'answr' is unknown; did you mean 'answer'?", "data.csv", ["--label", "answr"]),
    "unknown kind": ("kind 'text' is unknown", "data.csv", ["--kind", "job=text"]),
    "kind without column": ("must read column=value", "data.csv", ["--kind", "job"]),
    "unknown column": ("column 'jb' is unknown", "data.csv", ["--order", "jb=a,b"]),
    "incomplete order": ("the order lacks", "data.csv", ["--order", "job=cook"]),
    "schema and kind": ("--schema goes without", "data.csv", ["--schema", "s.json", "--kind", "job=categorical"]),
    "no schema": ("this is not a schema", "data.csv", ["--schema", "data.csv"]),
    "unknown generator": ("generator 'gan' is unknown", "data.csv", ["--generator", "gan"]),
    "identifier": ("as identifiers do", "ids.csv", []),
    "no header name": ("--drop 'Unnamed: 0'", "indexed.csv", []),
    "repeated names": ("column names repeat: ['age']", "repeated.csv", []),
    "not text": ("can't be read as CSV", "binary.csv", []),
    "empty file": ("can't be read as CSV", "empty.csv", []),
    "more cells than names": ("more cells than the header has names", "ragged.csv", []),
    "single class": ("a single class", "single.csv", []),
    "broken parquet": ("Parquet failed", "broken.parquet", []),
    "folder absent": ("make it first", "data.csv", ["-o", "nowhere/m.dicoflex"]),
}


@pytest.mark.parametrize("name", FIT_REFUSALS)
def test_fit_refuses(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words, data, options = FIT_REFUSALS[name]
    monkeypatch.chdir(tmp_path)
    bad_tables(tmp_path)
    before = set(tmp_path.iterdir())
    assert fit(tmp_path, *options, data=data) == 2
    refused(capsys, words)
    assert set(tmp_path.iterdir()) == before


def bad_tables(place: Path) -> None:
    """Tables that `fit` must refuse, and a good one."""
    frame = table()
    frame.to_csv(place / "data.csv", index=False)
    frame.to_csv(place / "data.txt", index=False)
    frame.to_csv(place / "indexed.csv")
    frame.assign(code=[f"x{i}" for i in range(ROWS)]).to_csv(place / "ids.csv", index=False)
    frame.assign(answer="yes").to_csv(place / "single.csv", index=False)
    (place / "repeated.csv").write_text("age,age,answer\n1,2,yes\n2,3,no\n")
    (place / "ragged.csv").write_text("age,answer\n1,2,yes\n2,3,no\n")
    (place / "binary.csv").write_bytes(b"age,answer\n\xff\xfe,yes\n")
    (place / "empty.csv").write_text("")
    (place / "broken.parquet").write_bytes(b"PAR1 or so")


def test_parquet_without_pyarrow_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table().to_parquet(tmp_path / "data.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert fit(tmp_path, data="data.parquet") == 2
    refused(capsys, "dicoflex[parquet]")


def test_bugs_are_told_from_mistakes(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(path: Path) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("dicoflex.model_file.read_header", broken)
    assert cli.main(["inspect", str(folder / "m.dicoflex")]) == 1
    said = capsys.readouterr().err
    assert "RuntimeError: boom" in said
    assert "Traceback" not in said
    assert cli.main(["--debug", "inspect", str(folder / "m.dicoflex")]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_interruption_has_its_own_exit_code(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dicoflex.model_file.read_header", interrupted)
    assert cli.main(["inspect", str(folder / "m.dicoflex")]) == 130
    assert "interrupted" in capsys.readouterr().err


def refused(capsys: pytest.CaptureFixture[str], words: str) -> None:
    """Check that the message is on stderr, has the words and no traceback, and that nothing was printed as a result."""
    said = capsys.readouterr()
    assert words in said.err
    assert "Traceback" not in said.err
    assert said.out == ""


def test_a_large_parquet_file_is_fitted_on_a_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table().assign(number=range(ROWS)).to_parquet(tmp_path / "rows.parquet")
    monkeypatch.setattr(surrogate, "STEPS", 200)
    monkeypatch.setattr(streaming, "MOST_ROWS", 120)
    monkeypatch.setattr(streaming, "sample_parquet", partial(streaming.sample_parquet, most_rows=120))
    code = fit(tmp_path, "--drop", "number", "--max-seconds", "1", "--seed", "0", data="rows.parquet")
    assert code == 0
    assert "learning from 120 of them" in " ".join(capsys.readouterr().err.split())
    model = load(tmp_path / "m.dicoflex")
    assert model.report_["rows"] == 120
    assert model.schema_.names == ["age", "zone", "job", "rate"]
