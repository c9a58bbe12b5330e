//! Captures: what is read of them, what is refused, and what they prove.

mod files;
mod hostile;
mod known_link;
mod reading;
