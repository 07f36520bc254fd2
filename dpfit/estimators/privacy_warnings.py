"""Warnings about what the guarantee does not cover; each is given before anything is spent."""

from __future__ import annotations


class PrivacyWarning(UserWarning):
    """Something weakens the guarantee, or is outside it."""


class AssumedFactWarning(PrivacyWarning):
    """Facts were read off the private data and are taken as public: declare them instead."""
