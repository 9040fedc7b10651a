"""Run directories: their configuration, their files, and what opens their models."""
