"""A package as AI Platform takes it: `python3 -m trainer.task`."""
