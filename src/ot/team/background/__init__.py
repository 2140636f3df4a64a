"""Background runs of a team: a docket in Redis that holds run ids, and the workers that carry runs out."""
