"""Training: one open loop that knows neither models nor objectives."""
