"""The same tasks with the tools offered in four ways: what each way costs a model."""
