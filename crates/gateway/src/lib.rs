//! TCP split in two at the edge of a radio network, as RFC 3135 §2 and RFC 3481 describe it: each connection of a client
//! ends here, and a second one leads on to the server. So each side has a sender of its own: toward the radio one that
//! keeps its queue short, toward the servers whatever the Internet expects.
//!
//! Bytes go from socket to socket by splice(2), and none is read that the other side will not soon take: a connection
//! holds what is in flight, some milliseconds of unsent data, and no more.

#![forbid(unsafe_code)]

mod forward;
mod gateway;
mod relay;
pub mod report;
mod routes;
mod sides;
mod splice;
mod syn;
mod transparent;

pub use forward::{serve_forward, serve_socks};
pub use gateway::{Gateway, Limits};
pub use relay::join;
pub use routes::keep_routes;
pub use sides::{Side, Sides};
pub use transparent::{Devices, Listeners, Transparent, describe};
