r"""Adapters to other engines and clusters, each with the extra of its own name.

``gest`` (engines that speak gest-api: Xopt, libEnsemble, Optimas, Blop), ``optuna``,
``sklearn`` (scikit-learn), and executors for ``run_experiment``: ``ray`` and
``submitit`` (Slurm). Importing one imports the library it adapts, so none is imported
here.
"""
