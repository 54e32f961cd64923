"""Run metrics of abstention: `coverage`, `selective_accuracy`, and the rates of both wrong decisions."""
