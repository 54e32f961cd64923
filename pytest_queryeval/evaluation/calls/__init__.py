"""The calls of predictors: the pool that every prediction comes from, and calls ahead of the tests."""
