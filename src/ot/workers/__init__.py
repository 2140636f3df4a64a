"""The processes of extension packs: environments, workers, their backend."""
