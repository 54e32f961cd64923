"""How comparisons of reports read: sentences and tables that a terminal, Markdown and a page show alike."""
