"""``ottla doctor``: the health of a broker or a cluster on one page. ``doctor`` runs the checks, ``diagnosis`` has their form."""
