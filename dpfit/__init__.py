"""dpfit: sparse models on sensitive files under differential privacy."""

__version__ = "0.1.0"
