"""Word alignment from attention."""
