import pytest
import torch

from botorch_lse.strategies import LSEStrategy
from research.papers.gotovos2013.runs import Curve, Run, run_strategy
from research.papers.gotovos2013.travel import path_length, visiting_order
from research.papers.problems import Problem, gp_sample


def square() -> torch.Tensor:
    return torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])


def test_path_length_adds_up_distances() -> None:
    points = torch.tensor([[0.0, 0.0], [3.0, 4.0], [3.0, 5.0]])
    assert path_length(points).tolist() == [0.0, 5.0, 6.0]
    assert path_length(points[:1]).tolist() == [0.0]


def test_visiting_order_goes_round_the_square() -> None:
    order = visiting_order(square())
    assert sorted(order.tolist()) == [0, 1, 2, 3]
    assert float(path_length(square()[order])[-1]) == pytest.approx(3.0)


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_visiting_order_keeps_repeated_places_together(n: int) -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(n, 2, generator=generator).repeat(2, 1)
    order = visiting_order(points, start=points[0])
    assert sorted(order.tolist()) == list(range(2 * n))
    assert order[0] % n == 0
    steps = points[order].diff(dim=0).norm(dim=-1)
    assert int((steps == 0).sum()) == n


def test_planned_path_is_shorter_than_a_random_one() -> None:
    points = torch.rand(30, 2, generator=torch.Generator().manual_seed(0))
    start = torch.tensor([0.0, 0.0])
    order = visiting_order(points, start)
    planned = path_length(torch.cat((start.unsqueeze(0), points[order])))[-1]
    assert float(planned) < 0.5 * float(path_length(points)[-1])


def small_problem() -> Problem:
    pool, prior, truth = gp_sample(0, 6, (0.4, 0.4))
    return Problem(pool, truth, 0.1, 0.0, 0.5, prior, 0)


def test_a_run_scores_every_round() -> None:
    problem = small_problem()
    strategy = LSEStrategy(
        problem.pool,
        problem.threshold,
        model=problem.prior,
        noise_std=0.1,
        beta=9.0,
        batch_size=5,
        max_observations=18,
    )
    run = run_strategy(problem, strategy, travel=True)
    assert run.evaluations.tolist() == [5, 10, 15, 18]
    assert len(run.rows) == 18
    assert bool((run.length.diff() > 0).all())
    assert 0.8 < float(run.f1[-1]) <= 1.0


def test_curves_keep_the_last_score_of_runs_that_stopped() -> None:
    def run(evaluations: list[int], f1: list[float]) -> Run:
        scores = torch.tensor(f1)
        length = torch.arange(float(len(f1)))
        return Run(torch.tensor(evaluations), scores, scores, length, torch.empty(0))

    runs = [run([2, 4], [0.5, 0.9]), run([2, 4, 6], [0.4, 0.6, 0.7])]
    curve = Curve.of_runs(runs, torch.tensor([2, 4, 6]))
    expected = torch.tensor([[0.5, 0.9, 0.9], [0.4, 0.6, 0.7]])
    assert torch.equal(curve.f1, expected)
    assert torch.equal(curve.at(torch.tensor([4])), expected[:, 1:2])
    lengths = curve.length_to(0.9)
    assert float(lengths[0]) == 1.0
    assert bool(lengths[1].isnan())
