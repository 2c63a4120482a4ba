r"""The claims of Weltz et al. (2023), each with the criterion that judges it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from research.papers.weltz2023.problems import ORACLE_TOLERANCE
from research.papers.weltz2023.runs import Example, Noisier
from research.report import Claim

FACTOR, FIRST_DIMENSION, PAPER_DIMENSION = 1.7, 11, 15
SHARES = (0.5, 0.5, 0.8)
SECONDS = 10.0
EVEN, LEFT = 0.01, 1e-6

Errors = Mapping[str, Tensor]
"""``seeds x k`` largest errors by estimator."""


def kappa_claims(curve: Sequence[Noisier]) -> list[Claim]:
    r"""Figure 1c, at values of ``kappa`` in ascending order from 1."""
    past = [point for point in curve if point.informative < LEFT]
    slopes = [point.ratio / point.kappa for point in past]
    spread = max(slopes) / min(slopes) - 1 if slopes else float("inf")
    low = min(p.kappa * p.ratio**-1 for p in curve)
    first = past[0].kappa if past else float("nan")
    return [
        Claim(
            "1c: rho*/psi* = 1 at kappa = 1 (within 1e-5)",
            "1",
            f"{curve[0].ratio:.6f}",
            abs(curve[0].ratio - 1) < 1e-5,
        ),
        Claim(
            "1c: rho*/psi* linear in kappa once the allocation has left e2 (constant "
            "slope within 1e-5)",
            "linear",
            f"from kappa = {first:g} on slope {slopes[0] if slopes else 0:.6f}, "
            f"spread {spread:.1e}",
            spread < 1e-5,
        ),
        Claim(
            "Appendix G: 1/kappa <= psi*/rho* <= 1",
            "yes",
            f"kappa psi*/rho* at least {low:.3f}, rho*/psi* at least "
            f"{min(p.ratio for p in curve):.3f}",
            low >= 1 - 1e-5 and min(p.ratio for p in curve) >= 1 - 1e-5,
        ),
    ]


def variance_claims(
    sizes: Sequence[int], by_size: Errors, dims: Sequence[int], by_dim: Errors
) -> list[Claim]:
    r"""Figure 2; the last of ``sizes`` is the one that ``dims`` are compared at."""
    size = {name: errors.mean(dim=0) for name, errors in by_size.items()}
    dim = {name: errors.mean(dim=0) for name, errors in by_dim.items()}
    factor = float(size["Uniform"][-1] / size["HEAD"][-1])
    others = [size[name] / size["HEAD"] for name in size if name != "HEAD"]
    least = float(min(ratio.min() for ratio in others))
    wide = [k for k, d in enumerate(dims) if d >= FIRST_DIMENSION]
    ratios = (dim["Separate Arm"] / dim["HEAD"])[wide]
    shown = ", ".join(
        f"{float(r):.2f} (d = {dims[k]})" for k, r in zip(wide, ratios, strict=True)
    )
    return [
        Claim(
            f"2a: HEAD's largest error below Uniform's by a factor of {FACTOR:g} at "
            f"d = {PAPER_DIMENSION}, {sizes[-1]} samples",
            "HEAD is best",
            f"{factor:.2f}",
            factor >= FACTOR,
        ),
        Claim(
            "2a: HEAD has the smallest error at every sample size",
            "yes",
            f"the others' errors at least {least:.2f} times HEAD's",
            least > 1,
        ),
        Claim(
            f"2b: HEAD scales better than Separate Arm (smaller error at each d >= "
            f"{FIRST_DIMENSION})",
            "Separate Arm scales poorly",
            f"Separate Arm / HEAD: {shown}",
            bool((ratios > 1).all()),
        ),
    ]


def sample_claims(examples: Sequence[Example]) -> list[Claim]:
    r"""Figure 3, the oracles' proofs and the time of a run."""
    found = []
    for k, (example, share) in enumerate(zip(examples, SHARES, strict=True)):
        mean = {m: float(example.samples(m).mean()) for m in ("H-RAGE", "RAGE")}
        ratio = mean["H-RAGE"] / mean["RAGE"]
        found.append(
            Claim(
                f"3{'abc'[k]}: H-RAGE with burn-in needs at most {share:g} of RAGE's "
                "samples",
                "fewer",
                f"{ratio:.3f} ({mean['H-RAGE']:,.0f} of {mean['RAGE']:,.0f})",
                ratio <= share,
            )
        )
    wrong = [example.wrong(m) for example in examples for m in example.runs]
    worst = max(w.fraction for w in wrong)
    found.append(
        Claim(
            "3: every method is wrong in at most delta of the runs",
            "delta = 0.05",
            f"worst {worst:.3f} of {wrong[0].runs} runs",
            worst <= wrong[0].delta,
        )
    )
    gaps = [o.design.gap for example in examples for o in (example.psi, example.rho)]
    found.append(
        Claim(
            f"Oracle designs certified to {ORACLE_TOLERANCE:g}",
            "not stated",
            f"largest gap {max(gaps):.1e}",
            max(gaps) <= ORACLE_TOLERANCE,
        )
    )
    slowest = max(run.seconds for run in examples[0].runs["H-RAGE"])
    found.append(
        Claim(
            f"A whole H-RAGE run of Example 1 in under {SECONDS:g} s",
            "not stated",
            f"slowest {slowest:.2f} s",
            slowest < SECONDS,
        )
    )
    return found


def oracle_claims(examples: Sequence[Example]) -> list[Claim]:
    r"""Figures 4 to 6: where the oracles measure."""
    first, second, third = (
        (_by_name(e, e.psi.design.weights), _by_name(e, e.rho.design.weights))
        for e in examples
    )
    large, small = "e2", ("0.4 e3", "0.4 e4")
    informative = [first[0][name] for name in (large, *small)]
    spread = max(informative) - min(informative)
    homoskedastic = min(first[1][name] for name in small) / first[1][large]
    quiet = second[0]["e3"] + second[0]["e2 + e3"]
    bent = [second[1][name] for name in ("e1 + e2", "e1 + e3", "e2 + e3")]
    noisy = [sum(w for name, w in o.items() if name[0] == "1") for o in third]
    return [
        Claim(
            f"4: the heteroskedastic oracle balances the informative arms (within "
            f"{EVEN:g}), the other prefers short ones",
            "yes",
            f"spread {spread:.1e}; short / long {homoskedastic:.1f}",
            spread < EVEN and homoskedastic > 2,
        ),
        Claim(
            "5: the heteroskedastic oracle prefers e3 and e2 + e3 (0.9), the other "
            f"takes the three bent arms evenly (within {EVEN:g})",
            "yes",
            f"{quiet:.3f}; {', '.join(f'{w:.3f}' for w in bent)}",
            quiet > 0.9 and max(bent) - min(bent) < EVEN,
        ),
        Claim(
            "6: the heteroskedastic oracle gives more weight to layouts with the "
            "noisy variation",
            "yes",
            f"{noisy[0]:.3f} against {noisy[1]:.3f}",
            noisy[0] > noisy[1],
        ),
    ]


def _by_name(example: Example, weights: Tensor) -> dict[str, float]:
    return dict(zip(example.problem.names, weights.tolist(), strict=True))
