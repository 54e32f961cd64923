"""Every pass challenged: whether small databases tell a predicted query, whose answer is right, from gold."""
