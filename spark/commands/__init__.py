"""``ottla spark …``: one module for each job, and the jobs' shared parts."""
