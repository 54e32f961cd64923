"""The types a case becomes on its way from a suite to the report, and what every layer shares."""
