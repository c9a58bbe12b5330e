//! Emulated links as they run: [`Board`] takes the statistics that an emulation publishes, [`Terminal`] shows the
//! latest in a terminal, [`Server`] shows them with their history in a browser.

#![forbid(unsafe_code)]

mod board;
mod guest;
mod terminal;
mod web;

pub use board::Board;
pub use terminal::Terminal;
pub use web::Server;
