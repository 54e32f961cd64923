"""The kind `json`: answers that are JSON documents, compared by their structure and their values."""
