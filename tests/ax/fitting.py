r"""Functions and classes that stored strategies may name."""

import torch
from botorch.models import SingleTaskGP


def plain_gp(train_X, train_Y, train_Yvar):
    return SingleTaskGP(train_X, train_Y, train_Yvar).eval()


def two_points():
    y = torch.tensor([[-1.0], [1.0]], dtype=torch.float64) / 2**0.5
    return torch.eye(2, dtype=torch.float64), y


def every_third(n_rounds):
    return n_rounds % 3 == 0


class Fitter:
    def __call__(self, train_X, train_Y, train_Yvar):
        return plain_gp(train_X, train_Y, train_Yvar)
