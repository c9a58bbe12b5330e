//! Frames of the other end: taken in, or a violation.

use strum::VariantArray;

use super::wire::{kind, missing};
use suimon_service::{NoTarget, Target};

use super::{Event, Mux, ResetReason, StreamId, Violation};

impl Mux {
    /// The next bytes of the aggregate have arrived.
    ///
    /// # Errors
    /// The other end broke the protocol.
    pub fn receive(&mut self, mut bytes: &[u8]) -> Result<(), Violation> {
        while !bytes.is_empty() {
            if let Some((id, left)) = self.decoder.data {
                let part = left.min(bytes.len());
                self.on_data(id, &bytes[..part])?;
                bytes = &bytes[part..];
                self.decoder.data = (left > part).then_some((id, left - part));
                continue;
            }
            let part = missing(&self.decoder.head)?.min(bytes.len());
            self.decoder.head.extend_from_slice(&bytes[..part]);
            bytes = &bytes[part..];
            if missing(&self.decoder.head)? == 0 {
                let head = std::mem::take(&mut self.decoder.head);
                self.on_frame(&head)?;
                self.decoder.head = head;
                self.decoder.head.clear();
            }
        }
        Ok(())
    }

    fn on_data(&mut self, id: StreamId, bytes: &[u8]) -> Result<(), Violation> {
        // A stream that was reset here may still get frames that were in flight.
        let Some(stream) = self.streams.get_mut(&id) else { return self.was_used(id) };
        if stream.reset.is_some() {
            return Ok(());
        }
        if stream.ended || stream.received + bytes.len() as u64 > stream.granted {
            return Err(Violation("data beyond a stream's credit or end"));
        }
        stream.received += bytes.len() as u64;
        if stream.buffer.capacity() - stream.buffer.len() < bytes.len() {
            // A quarter more than it holds: twice as much would be twice what was granted.
            stream.buffer.reserve_exact(bytes.len().max(stream.buffer.len() / 4));
        }
        stream.buffer.extend_from_slice(bytes);
        self.events.push(Event::Readable(id));
        Ok(())
    }

    /// Whether `id` is a stream that may have been, or a violation.
    fn was_used(&self, id: StreamId) -> Result<(), Violation> {
        if id < self.next { Ok(()) } else { Err(Violation("a stream that was never opened")) }
    }

    fn on_frame(&mut self, frame: &[u8]) -> Result<(), Violation> {
        let word = |at: usize| frame[at..at + 4].try_into().map(u32::from_be_bytes).expect("four bytes");
        if frame[0] == kind::PACKET {
            self.events.push(Event::Packet(frame[3..].to_vec()));
            return Ok(());
        }
        let id: StreamId = word(1);
        if frame[0] == kind::OPEN {
            return self.on_open(id, &frame[6..]);
        }
        self.was_used(id)?;
        if frame[0] == kind::DATA {
            let len = usize::from(u16::from_be_bytes([frame[5], frame[6]]));
            self.decoder.data = (len > 0).then_some((id, len));
            return Ok(());
        }
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        match frame[0] {
            kind::OPENED => {
                stream.opened = true;
                self.events.push(Event::Opened(id));
            }
            kind::CREDIT => {
                let limit = frame[5..13].try_into().map(u64::from_be_bytes).expect("eight bytes");
                stream.limit = stream.limit.max(limit);
                self.take_turn(id);
            }
            kind::BLOCKED => {
                stream.wanted = true;
                if self.grow(id) {
                    self.grant(id);
                }
            }
            kind::END if stream.ended => return Err(Violation("a second end of a stream")),
            kind::END => {
                stream.ended = true;
                self.events.push(Event::Readable(id));
                self.forget_if_done(id);
            }
            _ => {
                let reason = ResetReason::VARIANTS.get(usize::from(frame[5]));
                let reason = *reason.ok_or(Violation("an unknown reason to reset a stream"))?;
                if !stream.is_done() {
                    self.abandon(id, reason);
                    self.unsay(id);
                    self.events.push(Event::Reset(id));
                    self.forget_if_done(id);
                }
            }
        }
        Ok(())
    }

    fn on_open(&mut self, id: StreamId, target: &[u8]) -> Result<(), Violation> {
        if self.opens || id < self.next || id == StreamId::MAX {
            return Err(Violation("a stream that it may not open"));
        }
        if self.control.len() > MAX_CONTROL.max(4 * self.limits.streams as usize) {
            return Err(Violation("streams opened faster than answers are read"));
        }
        // Numbers grow, but one that was given up before it was sent is left out.
        self.next = id + 1;
        let most = self.limits.streams as usize;
        let open = self.streams.values().filter(|stream| !stream.is_done()).count();
        let target = match Target::from_bytes(target) {
            // A stream that has ended takes memory too, until its user lets go of it.
            _ if open >= most || self.streams.len() >= 2 * most => Err(ResetReason::Busy),
            // Another user's mistake is no reason to end the session.
            Err(NoTarget) => Err(ResetReason::UnknownName),
            Ok(target) => Ok(target),
        };
        match target {
            Ok(target) => {
                self.streams.insert(id, self.new_stream());
                self.events.push(Event::Open { stream: id, target });
            }
            Err(reason) => self.say_reset(id, reason),
        }
        Ok(())
    }
}

/// Frames that may wait for the other end to read.
const MAX_CONTROL: usize = 1024;
