//! Clients and servers on this host.

mod hostile;
mod loopback;
mod protected;
mod web;
