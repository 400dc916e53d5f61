"""Parity of sparse storage: for each op and storage of its inputs, what MXNet gives back and in which storage."""
