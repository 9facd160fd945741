"""Other tuners' names over Shirabe: change one import."""
