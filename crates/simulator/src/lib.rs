//! Deterministic packet-level network simulator.
