"""Parley, a self-hosted platform for AI agents."""

__version__ = "0.1.0"
