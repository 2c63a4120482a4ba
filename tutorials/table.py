# %% [markdown]
# # I have a table and no code
#
# You have a table of candidates in a spreadsheet, a bench that measures some of them,
# and a level. Nothing on this page needs Python: you type one command, fill in a sheet,
# and type the command again. Files go in and out, nothing else is kept, and you may
# stop after any line and go on next week.
#
# (The page itself is a script, so that it is tested. The few lines of Python type the
# commands, which stand after a `$`, show files, and stand in for the bench.)

# %%
import contextlib
import csv
import itertools
import os
import random
import shlex
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from botorch_lse.__main__ import command

QUICK = bool(os.environ.get("TUTORIAL_QUICK"))  # small numbers, for the tests
os.chdir(tempfile.mkdtemp())


def shell(line):
    """Type a line in a terminal."""
    print(f"$ {line}")
    with contextlib.redirect_stderr(sys.stdout):
        command(shlex.split(line)[1:])


def show(name, lines=8):
    """Open a file."""
    text = Path(name).read_text().splitlines()
    print("\n".join(text[:lines] + ["..."] * (len(text) > lines)))


# %% [markdown]
# ## The table
#
# One line a candidate: a column that names it and columns that describe it, with units
# if you like, numbers or words. Save it as CSV, in whatever way your spreadsheet does
# it: commas, semicolons or tabs, decimal points or commas. Here, mixes of concrete.

# %%
cement = range(280, 441, 40 if QUICK else 20)
water = [0.40, 0.48, 0.56] if QUICK else [0.40, 0.44, 0.48, 0.52, 0.56, 0.60]
mixes = list(itertools.product(cement, water, ["none", "fly ash"]))
with Path("candidates.csv").open("w", newline="") as file:
    table = csv.writer(file)
    table.writerow(["mix", "cement (kg/m3)", "water per cement", "additive"])
    table.writerows([f"M{i:03d}", *mix] for i, mix in enumerate(mixes, 1))
show("candidates.csv")

# %% [markdown]
# ## What will it cost?
#
# Which mixes are stronger than 40 MPa? Eight are cast each week. Mixes within 2 MPa of
# the level may be called either way, and a measurement is off by 1 MPa or so. Before
# anything is cast, functions that could be the truth are drawn and measured:

# %%
shell(
    "botorch-lse simulate candidates.csv --above 40 --column 'strength (MPa)' "
    "--key mix --epsilon 2 --batch 8 --first 16 --between 20,60 --noise 1 --runs "
    + ("1" if QUICK else "3")
)

# %% [markdown]
# The first call writes a file of settings. Later calls read it, so that they need no
# options; to change something, edit it there. A call that says something else is
# refused. (Inputs whose ratios count, such as doses from 0.1 to 100, are named by
# `--logs`: the model and the picture then see their logarithm. `--log-result` does the
# same for what is measured: levels, accuracy and answers stay in its units.)
#
# The first call says what it took each column for. What can be read in two ways, such
# as 1.000 or `800 ml`, is asked about.

# %%
show("botorch-lse.toml", 20)
shell("botorch-lse next --above 45")

# %% [markdown]
# ## The first sheet

# %%
shell("botorch-lse next")
show("sheet.csv", 20)


# %% [markdown]
# ## The bench
#
# Open `sheet.csv`, fill in the last column, save. Where something went wrong, say it in
# a word: `failed` is asked again, `n/a` cannot be measured and is not asked again, and
# an empty cell stays on the sheet. (In one cell the decimal point becomes an o.)
#
# A mark is taken back where it stands by then, in `results.csv`: empty the cell, and
# the next sheet asks for it again; or write the value in its place. `NA`, which R and
# pandas write where nothing stands, counts as empty. A limit, `<0.5` or `> 90`, decides
# its line where it lies on one side of the level; otherwise the side stays open until
# a finer method gives the value. To the model it is a limit: in place of a value it
# would make the model sure of what nobody measured.

# %%
bench = random.Random(0)


def strength(line):
    """The truth that the bench measures, in MPa."""
    ratio, content = float(line["water per cement"]), float(line["cement (kg/m3)"])
    bonus = 4 if line["additive"] == "fly ash" else 0
    return 44 - 110 * (ratio - 0.45) + 0.05 * (content - 340) + bonus


def fill_in(words=()):
    """Measure what is on the sheet; some cells get words in place of a number."""
    with Path("sheet.csv").open(newline="") as file:
        sheet = list(csv.DictReader(file))
    words = [*words, *[None] * len(sheet)]
    for line, word in zip(sheet, words, strict=False):
        value = f"{strength(line) + bench.gauss(0, 1):.1f}"
        line["strength (MPa)"] = value if word is None else word
    with Path("sheet.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, sheet[0])
        writer.writeheader()
        writer.writerows(sheet)


fill_in(["failed", "n/a", ""])
text = Path("sheet.csv").read_text()
slip = text.splitlines()[4].rpartition(",")[2]
Path("sheet.csv").write_text(text.replace(slip, slip.replace(".", "o")))

# %% [markdown]
# ## The next sheets
#
# A slip of the pen is found before it does harm, and every complaint says where it is
# and what to do:

# %%
shell("botorch-lse next")

# %% [markdown]
# Put right, what came back goes to `results.csv`, and the sheet is full again: the line
# that was left empty, the one that failed, and new ones.

# %%
Path("sheet.csv").write_text(text)
shell("botorch-lse next")
show("results.csv")
show("sheet.csv", 20)

# %% [markdown]
# Lines belong to candidates by their name, never by their place: sort your tables as
# you like. And so it goes on, week by week, until nothing more need be measured.

# %%
for _ in range(20):
    fill_in()
    shell("botorch-lse next")
    if len(Path("sheet.csv").read_text().splitlines()) == 1:  # its header alone
        break

# %% [markdown]
# ## The answer
#
# At any time: your table with columns beside it, the side, the probability of being
# above, what is expected and between which bounds, and a picture. (What may be claimed
# of it, and under which assumptions, `botorch-lse answer --details` says.)

# %%
shell("botorch-lse answer")
plt.close("all")  # in a notebook what the command drew would be shown twice
show("answer.csv")

# %%
figure, axes = plt.subplots(figsize=(8, 6.5))
axes.imshow(plt.imread("answer.png"))
axes.axis("off")
plt.show()

# %% [markdown]
# And since the bench was made up, the truth:

# %%
with Path("answer.csv").open(newline="") as file:
    lines = [line for line in csv.DictReader(file) if line["side"] != "n/a"]
decided = [line for line in lines if line["side"] != "undecided"]
wrong = [line for line in decided if (line["side"] == "above") != (strength(line) > 40)]
far = [line for line in wrong if abs(strength(line) - 40) > 2]
print(
    f"{len(decided)} of {len(lines)} decided, {len(wrong)} on the other side, of these"
)
print(f"{len(far)} by more than 2 MPa")
