//! Requests to rtnetlink, answered one by one.

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// Sends `request` in the calling thread's namespace and waits until it is done.
pub(crate) fn request(request: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
    exchange(request, flags | NLM_F_ACK).map(drop)
}

/// The objects that `request` asks for, in the calling thread's namespace.
pub(crate) fn list(request: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
    exchange(request, NLM_F_DUMP)
}

fn exchange(request: RouteNetlinkMessage, flags: u16) -> io::Result<Vec<RouteNetlinkMessage>> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | flags;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    let mut answers = Vec::new();
    loop {
        let (bytes, _) = socket.recv_from_full()?;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let unreadable = |error| io::Error::new(io::ErrorKind::InvalidData, format!("{error}"));
            let answer: NetlinkMessage<RouteNetlinkMessage> =
                NetlinkMessage::deserialize(rest).map_err(unreadable)?;
            let length = (answer.header.length as usize).next_multiple_of(4);
            rest = rest.get(length.max(4)..).unwrap_or_default();
            match answer.payload {
                NetlinkPayload::Done(_) => return Ok(answers),
                NetlinkPayload::Error(error) => {
                    return if error.code.is_none() { Ok(answers) } else { Err(error.to_io()) };
                }
                NetlinkPayload::InnerMessage(inner) => answers.push(inner),
                _ => {}
            }
        }
    }
}
