r"""The claims of Kone et al. (2025), each with the criterion that judges it."""

from __future__ import annotations

from collections.abc import Mapping

from botorch_lse.benchmark.kone2025_problems import ParetoInstance
from botorch_lse.benchmark.kone2025_runs import Score
from botorch_lse.benchmark.report import Claim

Errors = Mapping[str, Mapping[int, float]]

FLAT, HIGH, SHARE, CONFIDENT_MS, GAPS_SECONDS = 0.05, 0.5, 5, 150, 20


def synthetic_claims(errors: Errors, samples: Errors) -> list[Claim]:
    r"""Figures 1 and 2.

    Args:
        errors: Shares of wrong runs by method and ``K``.
        samples: Mean samples at a fixed confidence by method and ``K``.
    """
    gege = errors["GEGE"]
    spread = max(gege.values()) - min(gege.values())
    found = [
        Claim(
            f"synthetic: GEGE's error stays within {FLAT} from K = {min(gege)} to "
            f"{max(gege)}",
            "merely increases (Fig. 1)",
            f"{min(gege.values()):.3f} to {max(gege.values()):.3f}",
            spread <= FLAT,
        )
    ]
    for name in ("EGE-SH", "uniform"):
        values = errors[name]
        largest = max(values)
        found.append(
            Claim(
                f"synthetic: {name}'s error rises above {HIGH}",
                "grows much faster (Fig. 1)",
                f"{values[min(values)]:.3f} at K = {min(values)}, "
                f"{values[largest]:.3f} at {largest}",
                values[largest] > HIGH,
            )
        )
    growth = {n: v[max(v)] / v[min(v)] for n, v in samples.items()}
    ends = f"K = {min(samples['GEGE'])} to {max(samples['GEGE'])}"
    fewer = max(samples["GEGE"])
    return [
        *found,
        Claim(
            f"synthetic: GEGE's samples grow less than APE's, {ends}",
            "not significantly, unlike APE (Fig. 2)",
            f"times {growth['GEGE']:.2f} against times {growth['APE']:.2f}",
            growth["GEGE"] < growth["APE"],
        ),
        Claim(
            f"synthetic: GEGE uses fewer samples than APE at K = {fewer}",
            "fewer (Fig. 2)",
            f"{samples['GEGE'][fewer]:,.0f} against {samples['APE'][fewer]:,.0f}",
            samples["GEGE"][fewer] < samples["APE"][fewer],
        ),
    ]


def noc_claims(
    instance: ParetoInstance, errors: Errors, sure: Mapping[str, Score], delta: float
) -> list[Claim]:
    r"""Figures 3 and 4.

    Args:
        instance: The instance.
        errors: Shares of wrong runs by method and budget.
        sure: Runs at a fixed confidence, by method.
        delta: Their failure probability.
    """
    gege, rival = errors["GEGE"], errors["EGE-SH"]
    rows = instance.truth.nonzero().view(-1).tolist()
    ahead = rival[2331] - gege[2331]
    found = [
        Claim(
            "NoC: the linear instance has Pareto arms 0, 140, 164, 180",
            "the authors' notebook",
            f"{rows}; H_2lin = {instance.complexity.H_2_lin:.1f}",
            rows == [0, 140, 164, 180],
        ),
        *[
            Claim(
                f"NoC: GEGE's error at T = {T} is at most {limit}",
                "Fig. 3",
                f"{gege[T]:.3f}",
                gege[T] <= limit,
            )
            for T, limit in ((1780, 0.25), (3994, 0.05))
        ],
        Claim(
            "NoC: EGE-SH's error exceeds GEGE's by at least 0.5 at T = 2331",
            "reduced by up to 0.5 (Fig. 3)",
            f"{rival[2331]:.3f} - {gege[2331]:.3f} = {ahead:.3f}",
            ahead >= 0.5,
        ),
    ]
    ours = sure["GEGE"]
    found.append(
        Claim(
            f"NoC: GEGE at delta = {delta} errs within delta in at most 5 rounds",
            "Theorem 3",
            f"{ours.wrong} of {ours.runs} wrong, at most {max(ours.rounds)} rounds",
            ours.error <= delta and max(ours.rounds) <= 5,
        )
    )
    for name in ("APE", "racing"):
        theirs = sure[name]
        found.append(
            Claim(
                f"NoC: GEGE uses fewer samples than {name}",
                "significantly fewer (Fig. 4)" if name == "APE" else "(Fig. 7)",
                f"{ours.mean_samples:,.0f} against {theirs.mean_samples:,.0f}",
                ours.mean_samples < theirs.mean_samples,
            )
        )
    return found


def energy_claims(
    kinds: Mapping[str, ParetoInstance],
    scores: Mapping[str, Mapping[str, Score | None]],
) -> list[Claim]:
    r"""Appendix I.2.

    Args:
        kinds: The instances, by what their means are.
        scores: Runs of every method on each; ``None`` where it cannot run.
    """
    few = int(kinds["loads, minimise"].truth.sum())
    many = int(kinds["loads, maximise"].truth.sum())
    rank = kinds["loads, minimise"].complexity.rank
    found = [
        Claim(
            "energy: 2 Pareto arms minimising both loads, 3 maximising",
            "a front of 3 arms",
            f"{few} and {many}",
            (few, many) == (2, 3),
        ),
        Claim("energy: the 8 features have rank 7", "h = 8", str(rank), rank == 7),
    ]
    for name, methods in scores.items():
        gege, rival = methods["GEGE"], methods["EGE-SH"]
        if gege is None or rival is None:
            continue
        found.append(
            Claim(
                f"energy ({name}): GEGE errs less often than EGE-SH",
                "largely outperforms (Fig. 6)",
                f"{gege.error:.3f} against {rival.error:.3f}",
                gege.error < rival.error,
            )
        )
    return found


def runtime_claims(
    paper: Mapping[tuple[int, int, int], tuple[int, int]],
    measured: Mapping[tuple[int, int, int], tuple[float, bool, float, bool]],
) -> list[Claim]:
    r"""Table 2.

    Args:
        paper: The paper's milliseconds, budget and confidence.
        measured: Ours, each followed by whether the answers were right.
    """
    ratio = max(measured[key][0] / paper[key][0] for key in paper)
    slowest = max(times[2] for times in measured.values())
    right = all(times[1] and times[3] for times in measured.values())
    return [
        Claim(
            f"Table 2: fixed budget in at most a {SHARE}th of the paper's time, right",
            "217 to 2425 ms",
            f"at most {ratio:.3f} of it; {'all' if right else 'not all'} right",
            ratio <= 1 / SHARE and right,
        ),
        Claim(
            f"Table 2: fixed confidence in at most {CONFIDENT_MS} ms, right",
            "6 to 1013 ms",
            f"at most {slowest:.0f} ms; {'all' if right else 'not all'} right",
            slowest <= CONFIDENT_MS and right,
        ),
    ]


def gaps_claim(seconds: float) -> Claim:
    r"""Gaps of 10,000 arms with three outputs."""
    return Claim(
        f"gaps of K = 10,000 arms, d = 3, within {GAPS_SECONDS} s",
        "-",
        f"{seconds:.1f} s",
        seconds <= GAPS_SECONDS,
    )
