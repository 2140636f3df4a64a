"""Settings as frozen models: loading, the sections of plugins, secrets, trust."""
