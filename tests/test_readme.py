r"""The README's code runs, block after block."""

import re
from pathlib import Path

import torch
from botorch.models import SingleTaskGP

from tests.covering import more_when_slow

README = Path(__file__).parents[1] / "README.md"


@more_when_slow("budget", 40, 200)
def test_the_code_of_the_readme_runs(budget, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    text = README.read_text()
    assert text.count("max_observations=200") == 1
    text = text.replace("max_observations=200", f"max_observations={budget}")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 5
    names = {}
    for block in blocks:
        names.setdefault("model", None)
        exec(compile(block, str(README), "exec"), names)
        if names["model"] is None:  # the BoTorch block takes a fitted model for granted
            X = names["pool"].X[:20]
            names["model"] = SingleTaskGP(X, names["measure"](X).unsqueeze(-1)).eval()
    assert names["state"].is_done
    assert capsys.readouterr().out.startswith(("decided", "budget"))
    assert (tmp_path / "experiment.json").stat().st_size > 1000
    assert names["X"].shape == (4, 2)
    assert names["design"].gap <= 1e-3
    assert int(names["counts"].sum()) == 60
    assert len(names["own"].ask(names["own"].init())) == 8
