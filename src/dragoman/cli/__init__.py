"""The command line: one file a command, each a thin call into the package."""
