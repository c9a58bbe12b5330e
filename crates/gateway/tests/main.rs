//! The gateway as its users meet it.

mod floods;
mod relay;
