r"""Mason et al. (2022): MELK and MILK to the letter, Catoni's means, Frank-Wolfe."""

from botorch_lse.papers.mason2022.base import PACStrategy
from botorch_lse.papers.mason2022.catoni import catoni_alpha, catoni_mean, catoni_width
from botorch_lse.papers.mason2022.frank_wolfe import frank_wolfe_design
from botorch_lse.papers.mason2022.melk import MELKPACStrategy
from botorch_lse.papers.mason2022.milk import MILKPACStrategy
from botorch_lse.papers.mason2022.rips import RIPSEstimate, rips, rips_projection

__all__ = [
    "MELKPACStrategy",
    "MILKPACStrategy",
    "PACStrategy",
    "RIPSEstimate",
    "catoni_alpha",
    "catoni_mean",
    "catoni_width",
    "frank_wolfe_design",
    "rips",
    "rips_projection",
]
