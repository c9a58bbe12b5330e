//! Clients and servers on this host.

mod hostile;
mod loopback;
mod web;
