import re

import pytest
import torch
from filelock import FileLock

from vitpos.evaluation.finished import evaluate_finished, find_runs, main, parse, resolve
from vitpos.evaluation.reopen import reopen
from vitpos.record import read_record, write_record

SMALL = ["transfer.sizes=[4,[8,12]]", "accelerator=cpu"]


def test_commas_are_lists():
    settings, name = parse(["run=a,b", "transfer.coordinates=extrapolate,rescale,ntk", "transfer.sizes=8,16,[8,12]"])
    assert (list(settings.run), name) == (["a", "b"], "")
    assert list(settings.transfer.coordinates) == ["extrapolate", "rescale", "ntk"]
    assert settings.transfer.sizes == [8, 16, [8, 12]]
    settings, name = parse(["run=outputs/digits/*", "data=fashion_mnist", "fewshot=ridge", "transfer=none"])
    assert (settings.run, name) == ("outputs/digits/*", "fashion_mnist")
    assert settings.transfer.sizes == []


def test_settings_follow_the_data_of_each_run():
    settings, _ = parse(["run=a", "fewshot=ridge"])
    config = {"data": {"transfer_sizes": [28, [28, 56]], "shots": [3]}}
    assert resolve(settings, "transfer", config)["sizes"] == [28, [28, 56]]
    assert resolve(settings, "transfer", config)["temperature"] == "off"
    assert resolve(settings, "fewshot", config)["shots"] == [3]


def test_runs_are_found_by_path_pattern_and_list(finished_run, tmp_path, monkeypatch):
    first, second = finished_run("none")[0], finished_run("sincos_2d")[0]
    (tmp_path / "digits" / "report").mkdir()
    assert find_runs(str(first)) == [first]
    assert find_runs(f"{tmp_path}/digits/*") == sorted([first, second])
    assert find_runs([str(second), f"{tmp_path}/digits/none*", str(second)]) == [second, first]
    monkeypatch.chdir(tmp_path)
    assert [path.name for path in find_runs("digits/*")] == [first.name, second.name]
    for wrong in ("digits", "digits/x*", str(tmp_path / "nowhere")):
        with pytest.raises(ValueError, match=re.escape(f"run={wrong}: no run folder")):
            find_runs(wrong)


def test_rows_are_appended_replaced_and_never_mixed(finished_run, caplog):
    folder, _ = finished_run("rope_axial")
    before = read_record(folder)

    def evaluate(*overrides):
        with pytest.raises(SystemExit) as end:
            main([f"run={folder}", *SMALL, *overrides])
        assert end.value.code == 0
        return read_record(folder)

    assert len(evaluate().transfer) == 2
    assert len(evaluate().transfer) == 2
    record = evaluate("transfer.coordinates=rescale,ntk")
    assert len(record.transfer) == 6
    assert len({row.key for row in record.transfer}) == 6
    assert {row.table for row in record.transfer} == {"not_applicable"}
    more = evaluate("transfer.temperature=log_tokens")
    assert [row for row in more.transfer if row.temperature == "off"] == record.transfer
    assert len(more.transfer) == 8
    # Nothing else of the record has changed.
    assert read_record(folder).model_copy(update={"transfer": []}) == before
    assert "4x4 px, rescale: top-1" in caplog.text


def test_fewshot_on_this_and_on_another_data_set(finished_run):
    folder, _ = finished_run("none")
    settings, name = parse(["run=x", "transfer=none", "fewshot=ridge", "fewshot.shots=[2]"])
    metrics = evaluate_finished(folder, settings, name).metrics
    assert set(metrics) == {"test/top1", "fewshot/2", "fewshot/2_sd"}
    overrides = ["run=x", "transfer=none", "fewshot=ridge", "fewshot.shots=[2]", "data=digits", "data.limit_train=200"]
    settings, name = parse(overrides)
    more = evaluate_finished(folder, settings, name).metrics
    assert set(more) == {*metrics, "fewshot/digits/2", "fewshot/digits/2_sd"}


def test_a_network_that_is_not_the_one_measured_is_refused(finished_run):
    folder, _ = finished_run("none")
    record = read_record(folder)
    record.metrics["test/top1"] = 0.987
    write_record(folder, record)
    settings, _ = parse(["run=x", *SMALL])
    with pytest.raises(RuntimeError, match=r"stored is 0\.987 .* the network was not restored"):
        evaluate_finished(folder, settings)
    assert not read_record(folder).transfer
    # Another kind of device rounds differently.
    write_record(folder, record.model_copy(update={"device": "NVIDIA Imaginary"}))
    assert len(evaluate_finished(folder, settings).transfer) == 2


def test_a_run_in_use_and_an_unfinished_run_are_left_alone(finished_run, caplog):
    busy, unfinished, good = (finished_run(name)[0] for name in ("none", "sincos_1d", "sincos_2d"))
    (unfinished / "result.json").unlink()
    with FileLock(busy / ".lock"), pytest.raises(SystemExit) as end:
        main([f"run={busy},{unfinished},{good}", *SMALL])
    assert end.value.code == 1
    out = caplog.text
    assert "not evaluated" in out
    assert "another process holds this run" in out
    assert "result.json: cannot be read" in out
    assert len(read_record(good).transfer) == 2


def test_a_size_that_cannot_be_changes_nothing(finished_run, caplog):
    folder, _ = finished_run("none")
    before = (folder / "result.json").read_bytes()
    with pytest.raises(SystemExit) as end:
        main([f"run={folder}", "transfer.sizes=[8,9]"])
    assert end.value.code == 1
    assert "9x9 px is not divisible into patches of 2 px" in caplog.text
    assert (folder / "result.json").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["transfer=none"], "run"),
        (["run=nowhere"], "run=nowhere: no run folder"),
        (["run=nowhere", "transfer.size=[8]"], "transfer.size"),
        (["run=nowhere", "fewshot=logistic"], "ridge"),
        (["run=nowhere", "transfer.sizes=[8"], "sizes"),
    ],
)
def test_a_wrong_command_line_ends_with_a_message(arguments, message):
    with pytest.raises(SystemExit, match=message):
        main(arguments)


def test_several_kinds_of_evaluation_at_once(finished_run):
    folder, _ = finished_run("none")
    with pytest.raises(SystemExit) as end:
        main([f"run={folder}", "transfer=all", *SMALL, "fewshot=ridge", "fewshot.shots=[2]"])
    assert end.value.code == 0
    record = read_record(folder)
    assert len(record.transfer) == 4
    assert "fewshot/2" in record.metrics
    assert (folder / "figures" / "resolution.png").exists()


@pytest.mark.parametrize("head", [torch.nn.Identity(), torch.nn.Linear(16, 7)])
def test_a_head_for_other_classes_gives_no_accuracy(finished_run, monkeypatch, caplog, head):
    folder, _ = finished_run("rope_axial")
    before = read_record(folder)

    def beheaded(*arguments):
        config, model, data = reopen(*arguments)
        model.head = head
        return config, model, data

    monkeypatch.setattr("vitpos.evaluation.finished.reopen", beheaded)
    settings, _ = parse([f"run={folder}", *SMALL, "fewshot=ridge", "fewshot.shots=[2]"])
    record = evaluate_finished(folder, settings)
    assert "features only" in caplog.text
    assert record.transfer == before.transfer
    assert "fewshot/2" in record.metrics
