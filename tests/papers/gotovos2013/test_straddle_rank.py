import torch
from gpytorch.kernels import RBFKernel

from botorch_lse import Observations, Pool
from botorch_lse.papers import StraddleRankStrategy


def test_rows_by_rank_are_asked_for_again_once_all_others_are_out() -> None:
    X = torch.linspace(0, 1, 4, dtype=torch.float64).unsqueeze(-1)
    strategy = StraddleRankStrategy(
        Pool(X), 0.5, model=RBFKernel().double(), noise_std=0.3, batch_size=1,
        max_repeats=2,
    )  # fmt: skip
    state, out = strategy.init(), list[int]()
    state = strategy.tell(state, Observations(strategy.ask(state).order, [0.4]))
    while strategy.room(state, out) > 0:
        out += strategy.ask(state, out).order.tolist()
    assert len(out) == 7  # of four rows, two measurements each
    assert len({*out[:4]}) == 4
