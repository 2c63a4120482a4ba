r"""The claims of Gotovos et al. (2013), each with the criterion that judges it."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from research.papers.gotovos2013.runs import Curve
from research.report import Claim

Curves = Mapping[str, Curve]

SLIGHT, FAR, STUCK, TARGET, SEVERAL = 0.05, 0.2, 0.9, 0.95, 3.0


def claims(where: str, curves: Curves, checkpoints: Tensor) -> list[Claim]:
    r"""All claims for one problem.

    Args:
        where: The problem's short name, put before each claim.
        curves: By method.
        checkpoints: Numbers of measurements at which mean F1 scores are compared.
    """
    found = [
        _beats("LSE", "VAR", "2a, 2b", curves, checkpoints),
        _beats("STR", "VAR", "2a, 2b", curves, checkpoints),
        _close("LSE", "STR", "comparable (Fig. 2a, 2b)", curves, checkpoints),
        _close("LSE_batch", "LSE", "slightly worse (Fig. 2d)", curves, checkpoints),
        _close("STR_batch", "STR", "slightly worse (Fig. 2d)", curves, checkpoints),
        _rank_is_far("STR_rank", curves, checkpoints),
        _rank_is_far("STR_rank cold", curves, checkpoints),
        _implicit_costs_more(curves, checkpoints),
        _close(
            "LSE_imp-batch", "LSE_imp", "slightly worse (Fig. 2e)", curves, checkpoints
        ),
        _implicit_ends_above(curves),
        _implicit_straddle_gets_stuck(curves),
        *_travel(curves),
    ]
    return [Claim(f"{where}: {c.claim}", c.paper, c.measured, c.holds) for c in found]


def mean_gap(better: str, worse: str, curves: Curves, at: Tensor) -> Tensor:
    r"""Differences of the mean F1 scores of two methods at numbers of measurements."""
    return (curves[better].at(at) - curves[worse].at(at)).mean(dim=0)


def _beats(better: str, worse: str, figure: str, curves: Curves, at: Tensor) -> Claim:
    gap = mean_gap(better, worse, curves, at)
    return Claim(
        f"{better} beats {worse} in mean F1 at equal evaluations, {_span(at)}",
        f"clearly (Fig. {figure})",
        f"ahead by {_signed(gap.min())} to {_signed(gap.max())}",
        bool((gap > 0).all()),
    )


def _close(one: str, other: str, paper: str, curves: Curves, at: Tensor) -> Claim:
    behind = mean_gap(other, one, curves, at)
    worst = int(behind.argmax())
    return Claim(
        f"{one} stays within {SLIGHT} F1 of {other}, {_span(at)}",
        paper,
        f"lower by at most {_signed(behind[worst])} (after {int(at[worst])})",
        bool((behind <= SLIGHT).all()),
    )


def _rank_is_far(name: str, curves: Curves, at: Tensor) -> Claim:
    gap = mean_gap("STR_batch", name, curves, at)
    widest = int(gap.argmax())
    return Claim(
        f"{name} is at least {FAR} F1 below STR_batch, {_span(at)}",
        "far inferior (Fig. 2c, 2d)",
        f"below by {_signed(gap.min())} to {_signed(gap[widest])} (after "
        f"{int(at[widest])}); {_signed(gap[0])} after {int(at[0])}, {_signed(gap[-1])} "
        "at the end",
        bool((gap >= FAR).all()),
    )


def _implicit_costs_more(curves: Curves, at: Tensor) -> Claim:
    gap = mean_gap("LSE", "LSE_imp", curves, at)
    return Claim(
        f"LSE_imp learns more slowly than LSE, {_span(at)}: every mean F1 lower",
        "notably larger cost (Fig. 2e)",
        f"lower by {_signed(gap.min())} to {_signed(gap.max())}",
        bool((gap > 0).all()),
    )


def _implicit_ends_above(curves: Curves) -> Claim:
    ours, straddle = curves["LSE_imp"].f1[:, -1], curves["STR_imp"].f1[:, -1]
    return Claim(
        "LSE_imp ends above STR_imp (mean F1 at the end)",
        "STR_imp fails to reach high accuracy (Fig. 2e)",
        f"{ours.mean():.3f} (worst {ours.min():.3f}) against {straddle.mean():.3f} "
        f"(worst {straddle.min():.3f}), ahead in {int((ours > straddle).sum())} of "
        f"{len(ours)} runs",
        bool(ours.mean() > straddle.mean()),
    )


def _implicit_straddle_gets_stuck(curves: Curves) -> Claim:
    final = curves["STR_imp"].f1[:, -1]
    stuck = int((final < STUCK).sum())
    return Claim(
        f"STR_imp's worst case gets stuck (F1 below {STUCK} at the end)",
        "below 0.9 after 500 measurements (App. E)",
        f"worst {final.min():.3f}; {stuck} of {len(final)} runs stuck",
        bool(final.min() < STUCK),
    )


def _travel(curves: Curves) -> list[Claim]:
    sequential = curves["LSE"].length_to(TARGET)
    planned = curves["LSE_batch"].length_to(TARGET)
    ratios = sequential / planned
    reached = ratios[~ratios.isnan()]
    if len(reached):
        mean = float(reached.mean())
        measured = (
            f"{mean:.1f} times on average, {reached.min():.1f} to {reached.max():.1f}; "
            f"{len(reached)} of {len(ratios)} runs reached it"
        )
    else:
        mean, measured = 0.0, "not reached by both"
    text = f"planning batches of 30 shortens the path to F1 {TARGET}"
    paper = "more than six times (Fig. 2f)"
    return [
        Claim(f"{text} at least {SEVERAL:g} times", paper, measured, mean >= SEVERAL),
        Claim(f"{text} more than 6 times", paper, measured, mean > 6.0),
    ]


def _span(at: Tensor) -> str:
    return f"{int(at[0])} to {int(at[-1])} measurements"


def _signed(value: Tensor) -> str:
    return f"{float(value):+.3f}"
