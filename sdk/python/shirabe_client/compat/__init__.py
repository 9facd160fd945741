"""Other tools' names over a Shirabe server: `compat.katib`."""
