"""Peers: others that do the nearest job, by their own API, on the same machine and the same PostgreSQL."""
