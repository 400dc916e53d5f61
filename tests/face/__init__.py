"""The face compared with MXNet's: builders that run under either, and the facts recorded from the real one."""
