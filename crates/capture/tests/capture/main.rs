//! Captures: packets read, files refused, and the round-trip times that they prove.

mod files;
mod hostile;
mod known_link;
mod reading;
