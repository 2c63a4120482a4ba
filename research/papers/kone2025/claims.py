r"""The claims of Kone et al. (2025), each with the criterion that judges it."""

from __future__ import annotations

from collections.abc import Mapping

from research.papers.kone2025.problems import ParetoInstance
from research.papers.kone2025.runs import Score
from research.report import Claim

Errors = Mapping[str, Mapping[int, float]]

RIVALS = ("GEGE", "APE")
FLAT, HIGH, SHARE, CONFIDENT_MS, GAPS_SECONDS = 0.05, 0.5, 5, 150, 20


def synthetic_claims(
    errors: Mapping[int, Errors], samples: Mapping[int, Errors]
) -> list[Claim]:
    r"""Figures 1 and 2; a claim holds if it does on every instance.

    Args:
        errors: For each instance shares of wrong runs by method and ``K``.
        samples: For each mean samples at a fixed confidence by method and ``K``.
    """
    first = next(iter(errors.values()))["GEGE"]
    spreads = [
        max(e["GEGE"].values()) - min(e["GEGE"].values()) for e in errors.values()
    ]
    found = [
        Claim(
            f"synthetic: GEGE's error stays within {FLAT} from K = {min(first)} to "
            f"{max(first)}",
            "merely increases (Fig. 1)",
            "spreads " + ", ".join(f"{spread:.3f}" for spread in spreads),
            max(spreads) <= FLAT,
        )
    ]
    for name in ("EGE-SH", "uniform"):
        last = [(max(e[name]), e[name][max(e[name])]) for e in errors.values()]
        found.append(
            Claim(
                f"synthetic: {name}'s error rises above {HIGH} at the largest K it can "
                "run with",
                "grows much faster (Fig. 1)",
                ", ".join(f"{error:.3f} at {K}" for K, error in last),
                all(error > HIGH for _, error in last),
            )
        )
    growth = [
        [v[n][max(v[n])] / v[n][min(v[n])] for n in RIVALS] for v in samples.values()
    ]
    ratios = [
        v["GEGE"][max(v["GEGE"])] / v["APE"][max(v["APE"])] for v in samples.values()
    ]
    sizes = next(iter(samples.values()))["GEGE"]
    return [
        *found,
        Claim(
            f"synthetic: GEGE's samples grow less than APE's, K = {min(sizes)} to "
            f"{max(sizes)}",
            "not significantly, unlike APE (Fig. 2)",
            "times " + ", ".join(f"{a:.2f} against {b:.2f}" for a, b in growth),
            all(ours < theirs for ours, theirs in growth),
        ),
        Claim(
            f"synthetic: GEGE uses fewer samples than APE at K = {max(sizes)}",
            "fewer (Fig. 2)",
            ", ".join(f"{ratio:.1f}" for ratio in ratios) + " times APE's",
            all(ratio < 1 for ratio in ratios),
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
    sure: Mapping[str, Mapping[str, Score]],
) -> list[Claim]:
    r"""Appendix I.2.

    Args:
        kinds: The instances, by what their means are.
        scores: Runs of every method on each; ``None`` where it cannot run.
        sure: Runs of GEGE and racing on each at a fixed confidence.
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
    for name, methods in sure.items():
        ours, theirs = methods["GEGE"], methods["racing"]
        found.append(
            Claim(
                f"energy ({name}): GEGE uses fewer samples than racing, no more errors",
                "largely outperforms (Fig. 7)",
                f"{ours.mean_samples:.3g} against {theirs.mean_samples:.3g}; "
                f"{ours.wrong} of {ours.runs} against {theirs.wrong} of {theirs.runs} "
                "wrong",
                ours.mean_samples < theirs.mean_samples and ours.error <= theirs.error,
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
