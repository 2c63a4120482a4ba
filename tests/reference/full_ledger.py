r"""An experiment read in one go, from Ax's own tables and nothing remembered."""

from collections import Counter, defaultdict

import numpy as np
from ax.core.batch_trial import BatchTrial

from botorch_lse.ax.compat import as_stored
from botorch_lse.ax.ledger import Ledger, Measurement, Round, how_to_fill

COUNTS = ("COMPLETED", "EARLY_STOPPED")
FREES = ("FAILED", "STALE")


def tables(experiment, metrics):
    r"""Value and standard error by trial, arm and metric; and all metrics there."""
    values, names = {}, defaultdict(set)
    for row in experiment.lookup_data().df.itertuples():
        status = experiment.trials[row.trial_index].status.name
        if status == "EARLY_STOPPED" and not np.isnan(row.step):
            continue  # what it had come to when it was stopped
        mean, sem = as_stored([row.mean, row.sem])
        names[row.trial_index, row.arm_name].add(row.metric_name)
        if row.metric_name in metrics:
            values[row.trial_index, row.arm_name, row.metric_name] = (mean, sem)
    return values, names


def full_ledger(node, experiment, metrics, noise_std):
    r"""The ledger by the rule of ``ax/ledger.py``; ``noise_std`` for missing ones."""
    values, names = tables(experiment, metrics)
    plans, fields, groups, pending, spoilt = {}, {}, [[]], [], set()
    for i, trial in experiment.trials.items():
        n_planned, label, status = Counter(), {}, trial.status.name
        for run in trial.generator_runs:
            if run._generation_node_name != node.name:
                continue
            stored = run.gen_metadata["level_set"]
            if stored["round"] not in plans:
                plans[stored["round"]] = tuple(stored["plan"])
                fields[stored["round"]] = defaultdict(list)
                groups.append([])
            for arm, weight in run.arm_weights.items():
                n_planned[arm.name] += round(weight)
                label.setdefault(arm.name, stored["round"])
        is_batch = isinstance(trial, BatchTrial)
        for arm in trial.arms:
            row = node.space(experiment).row_of(arm.parameters, "")
            gone = status == "ABANDONED" or (
                is_batch and arm.name in trial.abandoned_arm_names
            )
            found = [values.get((i, arm.name, metric)) for metric in metrics]
            measured = None
            counts = status in COUNTS and not gone
            if counts and any(np.isnan(own[0]) for own in filter(None, found)):
                spoilt.add((i, arm.name))
                continue
            if counts and None not in found:
                yvar = [
                    noise_std**2 / (trial.arm_weights[arm] if is_batch else 1)
                    if np.isnan(sem)
                    else sem * sem
                    for _, sem in found
                ]
                y = tuple(float(mean) for mean, _ in found)
                count = n_planned.get(arm.name, 1)
                measured = Measurement(row, y, tuple(yvar), i, arm.name, count)
            if arm.name not in n_planned:
                if measured:
                    groups[-1].append(measured)
                elif not gone and status not in (*FREES, *COUNTS):
                    pending.append(row)
            elif status not in FREES:
                to, rows = fields[label[arm.name]], n_planned[arm.name] * [row]
                if measured:
                    to["results"].append(measured)
                elif gone or status == "EARLY_STOPPED":
                    to["lost"] += rows
                else:
                    to["running"] += rows
                    to["running_trials"].append(i)
                    if status == "COMPLETED":
                        to["unfilled"].append(i)
                    if status == "COMPLETED" and "remedy" not in to:
                        there = names[i, arm.name]
                        to["remedy"] = how_to_fill(i, metrics, there)
    steps, last, tail = elsewhere(groups[0]), None, ()
    for number, (plan, after) in enumerate(zip(plans, groups[1:], strict=True), 1):
        to = {k: v if k == "remedy" else tuple(v) for k, v in fields[plan].items()}
        last = Round(plans[plan], number=plan, **to)
        if number == len(plans) and not last.is_over:
            tail = tuple(sorted(after))
            break
        steps += [last.close(), *elsewhere(after)]
        last = None
    found = tuple(steps), last, tail, tuple(sorted(pending)), len(plans)
    return Ledger(*found, failed=frozenset(spoilt))


def elsewhere(group):
    results = tuple(sorted(group))
    plan = tuple(m.row for m in results)
    return [Round(plan, results, is_own=False)] if results else []
