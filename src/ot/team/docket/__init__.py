"""The docket: where the ids of background runs wait in Redis for a worker."""
