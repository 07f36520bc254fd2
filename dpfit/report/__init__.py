"""What is shown of a model and a ledger, all of it computed from released values."""
