"""Pictures of what the probes find."""
