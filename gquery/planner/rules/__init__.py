"""The optimizer's rules, one a file; `planner.optimizer` says in which order they run and why."""
