"""A program of two files: what it imports lies beside it, in the package."""

import sys

from model.loss import loss

print(f"loss={loss(float(sys.argv[1]))}")
