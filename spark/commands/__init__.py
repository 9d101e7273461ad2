"""``ottla spark …``: one module for each job, and what the jobs share."""
