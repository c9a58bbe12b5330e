//! The gateway as its users meet it.

mod relay;
