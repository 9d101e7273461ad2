"""``ottla spark …``: one module for each job, and what they have in common."""
