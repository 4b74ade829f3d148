"""Notifications: what other areas call."""
