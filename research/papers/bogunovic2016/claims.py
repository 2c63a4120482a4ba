r"""The claims of Bogunovic et al. (2016), each with the criterion that judges it."""

from __future__ import annotations

import torch
from torch import Tensor

from research.papers.bogunovic2016.level_sets import MIXED, Runs, level_name
from research.papers.bogunovic2016.optimisation import Regrets
from research.papers.bogunovic2016.problems import LEVELS
from research.papers.bogunovic2016.runs import PricedRun
from research.report import Claim

CLOSE, SAVING, MARGIN = 0.05, 0.7, 0.02
CHEAPER_SHARE = 17 / 20
OUTLIERS = 0.05
EARLY = 0.2
"""Share of the budget that counts as early."""


def unit_claims(runs: Runs, checkpoints: Tensor) -> list[Claim]:
    r"""Figure 2a.

    Args:
        runs: Of TruVaR, LSE, STR and VAR.
        checkpoints: Numbers of measurements at which mean scores are compared.
    """
    mean = {name: _mean_f1(r, checkpoints) for name, r in runs.items()}
    behind = torch.stack([mean[name] - mean["TruVaR"] for name in ("LSE", "STR")])
    ahead = mean["TruVaR"] - mean["VAR"]
    span = f"{int(checkpoints[0])} to {int(checkpoints[-1])} measurements"
    return [
        Claim(
            f"lake, unit cost: TruVaR stays within {CLOSE} F1 of LSE and STR, {span}",
            "performs similarly (Fig. 2a)",
            f"lower by {behind.min():+.3f} to {behind.max():+.3f}",
            bool((behind <= CLOSE).all()),
        ),
        Claim(
            f"lake, unit cost: TruVaR beats VAR in mean F1, {span}",
            "outperforms (Fig. 2a)",
            f"ahead by {ahead.min():+.3f} to {ahead.max():+.3f}",
            bool((ahead > 0).all()),
        ),
    ]


def travel_claims(where: str, runs: Runs, target: float) -> list[Claim]:
    r"""Figure 2b: cost to reach a score, TruVaR against LSE.

    Args:
        where: The problem's name.
        runs: Of TruVaR and LSE.
        target: The score.
    """
    ours, theirs = (
        torch.tensor([r.cost_to(target) for r in runs[name]])
        for name in ("TruVaR", "LSE")
    )
    reached = torch.isfinite(ours)
    cheaper = int((ours < theirs).sum())
    both = reached & torch.isfinite(theirs)
    ratio = float(ours[both].mean() / theirs[both].mean()) if both.any() else torch.nan
    single = (ours / theirs)[both]
    details = f"{ours[both].mean():.0f} against {theirs[both].mean():.0f}"
    return [
        Claim(
            f"{where}: mean cost to F1 {target} at most {SAVING} of LSE's",
            "significantly smaller (Fig. 2b)",
            f"{ratio:.2f} ({details}); single runs {single.min():.2f} to "
            f"{single.max():.2f}; both reached it in {int(both.sum())} of {len(ours)}"
            if both.any()
            else "LSE never reached it",
            bool(reached.all()) and (not bool(both.any()) or ratio <= SAVING),
        ),
        Claim(
            f"{where}: cheaper on at least 17 of 20 runs",
            "one curve above the other (Fig. 2b)",
            f"{cheaper} of {len(ours)}",
            cheaper >= CHEAPER_SHARE * len(ours),
        ),
    ]


def level_claims(runs: Runs, axis: Tensor) -> list[Claim]:
    r"""Figure 2c: F1 averaged over the cost axis.

    Args:
        runs: Of TruVaR on all levels and of LSE on each.
        axis: Costs.
    """
    mean = {name: float(_mean_f1(r, axis).mean()) for name, r in runs.items()}
    ours = mean[MIXED]
    singles = sorted((mean[level_name(k)] for k in range(len(LEVELS))), reverse=True)
    measured = f"{ours:.3f} against {', '.join(f'{v:.3f}' for v in singles)}"
    return [
        Claim(
            "noise levels: F1 averaged over the cost axis not below the best single "
            f"level minus {MARGIN}",
            "consistently better than all three (Fig. 2c)",
            measured,
            ours >= singles[0] - MARGIN,
        ),
        Claim(
            "noise levels: above the two other single levels",
            "the same",
            measured,
            ours > singles[1],
        ),
    ]


def peak_claims(regrets: Regrets) -> list[Claim]:
    r"""Figures 3a, 3b: final regrets, and the early lag."""
    ours = regrets["TruVaR"]
    rivals = ("EI", "GP-UCB")
    final = {name: float(r[:, -1].mean()) for name, r in regrets.items()}
    others = ", ".join(f"{name} {final[name]:.4f}" for name in final)
    best = min(final[name] for name in rivals)
    trimmed = {name: float(trimmed_mean(r)[-1]) for name, r in regrets.items()}
    early = max(int(EARLY * ours.shape[-1]), 1) - 1
    lag = {name: float(r[:, early].mean()) for name, r in regrets.items()}
    return [
        Claim(
            "maxima: TruVaR's mean regret at the end not above EI's and GP-UCB's",
            "best performance in the later rounds (Fig. 3a, 3b)",
            f"{others}; {int((ours[:, -1] > 1e-9).sum())} of {len(ours)} runs of "
            "TruVaR miss the maximum",
            final["TruVaR"] <= best + 1e-9,
        ),
        Claim(
            "maxima: the same without the best and worst 5 % of the runs",
            "the paper's statistic (Fig. 3b)",
            ", ".join(f"{name} {v:.4f}" for name, v in trimmed.items()),
            trimmed["TruVaR"] <= min(trimmed[name] for name in rivals) + 1e-9,
        ),
        Claim(
            f"maxima: TruVaR is behind both after {early + 1} measurements",
            "improves slowly at first (Fig. 3a)",
            ", ".join(f"{name} {lag[name]:.3f}" for name in lag),
            lag["TruVaR"] > max(lag[name] for name in rivals),
        ),
    ]


def svm_claims(regrets: Regrets) -> list[Claim]:
    r"""Figure 3c: the validation error at the end."""
    final = {name: float(r[:, -1].mean()) for name, r in regrets.items()}
    return [
        Claim(
            "SVM grid: TruVaR's mean error at the end not above EI's and GP-UCB's",
            "slightly better (Fig. 3c)",
            ", ".join(f"{name} {v:.5f}" for name, v in final.items())
            + " above the best row",
            final["TruVaR"] <= min(final["EI"], final["GP-UCB"]) + 1e-9,
        )
    ]


def trimmed_mean(regrets: Tensor) -> Tensor:
    r"""Means over runs without the best and worst 5 %, as in Figure 3b.

    Args:
        regrets: ``runs x steps``.
    """
    cut = int(OUTLIERS * len(regrets))
    return regrets.sort(dim=0).values[cut : len(regrets) - cut].mean(dim=0)


def _mean_f1(runs: list[PricedRun], at: Tensor) -> Tensor:
    return torch.stack([run.at(at) for run in runs]).mean(dim=0)
