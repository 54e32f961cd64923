"""Reports for pull requests: `report.md`, `github` and `report.codequality`."""
