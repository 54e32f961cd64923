"""Whether systems abstain where they should: `coverage`, `selective_accuracy`, and both kinds of wrong decisions."""
