"""Other image sizes: protocols never share a row, fine-tuned stands beside zero-shot."""

from __future__ import annotations

from vitpos.report import make_report
from vitpos.report.build import files
from vitpos.report.protocols import Protocol, belongs, choose_panels

NA = "not_applicable"


def rows(*points, coordinates=NA, table="bicubic_antialias", temperature="off", n=360):
    protocol = {"coordinates": coordinates, "table": table, "temperature": temperature}
    return [
        {"height": height, "width": width, "top1": top1, "nll": 0.5, "n": n, "tokens": 17, "images_per_second": 100.0}
        | protocol
        for height, width, top1 in points
    ]


def table(experiment, read_csv):
    return read_csv(files(make_report(experiment.folder))["transfer.csv"])


def test_long_form_with_mean_interval_and_n(experiment, read_csv):
    for seed, top1 in enumerate((0.50, 0.52, 0.54)):
        experiment.run("learned_1d", seed, 0.9, transfer=rows((8, 8, 0.9), (16, 8, top1)))
    found = table(experiment, read_csv)
    assert [(row["position"], row["height"], row["width"]) for row in found] == [
        ("learned_1d", "8", "8"),
        ("learned_1d", "16", "8"),
    ]
    row = found[1]
    assert (row["protocol"], row["n"], row["images"], row["tokens"]) == (
        "zero-shot, bicubic_antialias",
        "3",
        "360",
        "17",
    )
    assert (row["top1_mean"], row["fine_tuned_epochs"], row["trained_height"]) == ("0.52", "0", "8")
    assert row["top1_ci95"].startswith("0.04968")  # 4.302653 * 0.02 / sqrt(3)


def test_protocols_never_share_a_row(experiment, read_csv):
    for seed in range(2):
        several = [
            *rows((16, 16, 0.5), coordinates="extrapolate", table=NA),
            *rows((16, 16, 0.6), coordinates="rescale", table=NA),
            *rows((16, 16, 0.7), coordinates="rescale", table=NA, temperature="log_tokens"),
        ]
        experiment.run("rope_axial", seed, 0.9, transfer=several)
    found = table(experiment, read_csv)
    assert [(row["protocol"], row["top1_mean"], row["n"]) for row in found] == [
        ("zero-shot, extrapolate", "0.5", "2"),
        ("zero-shot, rescale", "0.6", "2"),
        ("zero-shot, rescale, log_tokens", "0.7", "2"),
    ]


def test_a_size_too_large_is_said_and_not_averaged(experiment, read_csv):
    bad = {"top1": None, "nll": None, "n": 0, "status": "out_of_memory"}
    experiment.run("learned_1d", 0, 0.9, transfer=rows((64, 64, 0.4)))
    experiment.run("learned_1d", 1, 0.9, transfer=[rows((64, 64, None))[0] | bad])
    experiment.run("none", 0, 0.9, transfer=[rows((64, 64, None))[0] | bad])
    found = {row["position"]: row for row in table(experiment, read_csv)}
    assert (found["learned_1d"]["n"], found["learned_1d"]["not_ok"]) == ("1", "out_of_memory: 1")
    assert (found["none"]["n"], found["none"]["top1_mean"], found["none"]["not_ok"]) == ("0", "", "out_of_memory: 1")
    assert "out of memory" in files(make_report(experiment.folder))["table.md"]


def test_fewer_seeds_are_said(experiment):
    experiment.run("learned_1d", 0, 0.9, transfer=rows((8, 8, 0.9), (16, 16, 0.6)))
    experiment.run("learned_1d", 1, 0.9, transfer=rows((8, 8, 0.9)))
    (view,) = make_report(experiment.folder).transfers
    assert [row[2].text for row in view.table.rows] == ["90.00 ± 0.00", "60.00 (n = 1)"]


def test_fine_tuned_beside_zero_shot(experiment, new_experiment, read_csv):
    """The fine-tuned runs lie in another experiment than their parents."""
    finetune = new_experiment("finetune")
    for seed in range(3):
        parent = experiment.run("learned_1d", seed, 0.9, transfer=rows((8, 8, 0.9), (16, 16, 0.6)))
        finetune.run(
            "learned_1d",
            seed,
            0.8 + 0.01 * seed,
            config={"data": {"image_size": 16}, "resize": {"table": "bicubic", "coordinates": "extrapolate"}},
            parent={"name": parent.name, "image_size": 8},
        )
    report = make_report(finetune.folder)
    assert [view.table.title for view in report.sections] == ["digits, 16 x 16 px, vit_nano, fine-tuned from 8 x 8 px"]
    (view,) = report.transfers
    assert view.table.title == "digits, 8 x 8 px, vit_nano"
    assert [[cell.text for cell in row] for row in view.table.rows] == [
        ["learned_1d", "8 x 8 (trained)", "90.00 ± 0.00", "—"],
        ["learned_1d", "16 x 16", "60.00 ± 0.00", "81.00 ± 2.48"],
    ]
    found = table(finetune, read_csv)
    assert {(row["height"], row["fine_tuned_epochs"], row["top1_mean"]) for row in found} == {
        ("8", "0", "0.9"),
        ("16", "0", "0.6"),
        ("16", "3", "0.81"),
    }


def test_fine_tuned_and_scratch_are_never_averaged(experiment):
    parent = experiment.run("learned_1d", 0, 0.9)
    experiment.run(
        "learned_1d", 0, 0.8, config={"trainer": {"max_epochs": 5}}, parent={"name": parent.name, "image_size": 8}
    )
    report = make_report(experiment.folder)
    assert [view.table.title for view in report.sections] == [
        "digits, 8 x 8 px, vit_nano",
        "digits, 8 x 8 px, vit_nano, fine-tuned from 8 x 8 px",
    ]


def test_panels_vary_one_factor_at_a_time():
    tables = ("bilinear", "bicubic_antialias", "bicubic")
    protocols = [Protocol(table, NA, "off") for table in tables]
    protocols += [
        Protocol(NA, value, temperature)
        for value in ("rescale", "extrapolate")
        for temperature in ("off", "log_tokens")
    ]
    panels = choose_panels(protocols)
    assert panels[0] == Protocol("bicubic_antialias", "extrapolate", "off")
    assert len(panels) == 1 + 2 + 1 + 1


def test_an_arm_is_drawn_wherever_its_factors_fit():
    panel = Protocol("bicubic_antialias", "rescale", "off")
    assert belongs(Protocol("bicubic_antialias", NA, "off"), panel)
    assert belongs(Protocol(NA, "rescale", "off"), panel)
    assert belongs(Protocol(NA, NA, "off"), panel)
    assert not belongs(Protocol(NA, "extrapolate", "off"), panel)
    assert not belongs(Protocol(NA, "rescale", "log_tokens"), panel)
    assert not belongs(Protocol("bicubic_antialias", "rescale", "off", fine_tuned=True, epochs=5), panel)
