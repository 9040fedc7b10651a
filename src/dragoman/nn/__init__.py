"""The blocks that models are made of. They take plain numbers and modules, never a configuration."""
