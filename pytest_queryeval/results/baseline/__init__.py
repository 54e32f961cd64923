"""Reports compared with each other: a run with a baseline, gates on what got worse, and leaderboards."""
