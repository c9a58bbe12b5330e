//! Frames of the other end: taken in, or a violation.

use strum::VariantArray;

use suimon_service::{NoTarget, Target};

use super::wire::{StreamFrame, split};
use super::{Event, Mux, ResetReason, ServiceClass, StreamId, Violation};

impl Mux {
    /// Whole frames have arrived, in any order with others.
    ///
    /// # Errors
    /// The other end broke the protocol.
    pub fn receive(&mut self, mut bytes: &[u8]) -> Result<(), Violation> {
        while !bytes.is_empty() {
            let (frame, rest) = split(bytes)?;
            self.on_frame(frame)?;
            bytes = rest;
        }
        Ok(())
    }

    fn on_frame(&mut self, frame: StreamFrame<'_>) -> Result<(), Violation> {
        match frame {
            StreamFrame::Packet(class, packet) => self.events.push(Event::Packet(class, packet.to_vec())),
            StreamFrame::Open(id, class, target) => return self.on_open(id, class, target),
            StreamFrame::Data(id, offset, bytes) => return self.on_data(id, offset, bytes),
            StreamFrame::End(id, length) => return self.on_end(id, length),
            StreamFrame::Reset(id, reason) => return self.on_reset(id, reason),
            StreamFrame::Opened(id) => {
                self.was_used(id)?;
                self.heard_of(id);
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.opened = true;
                    self.events.push(Event::Opened(id));
                }
            }
            StreamFrame::Credit(id, limit) => {
                self.was_used(id)?;
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.limit = stream.limit.max(limit);
                    self.take_turn(id);
                }
            }
            StreamFrame::Blocked(id) => {
                self.was_used(id)?;
                self.want_more(id);
            }
        }
        Ok(())
    }

    fn on_data(&mut self, id: StreamId, offset: u64, bytes: &[u8]) -> Result<(), Violation> {
        // A stream that was reset here may still get frames that were in flight.
        let Some(stream) = self.streams.get_mut(&id) else { return self.was_used(id) };
        if stream.reset.is_some() {
            return Ok(());
        }
        let end = offset + bytes.len() as u64;
        if end > stream.granted || stream.length.is_some_and(|length| end > length) {
            return Err(Violation("data beyond a stream's credit or end"));
        }
        let (held, pieces) = (stream.inbox.held, stream.inbox.pieces());
        if stream.inbox.put(offset, bytes) {
            self.events.push(Event::Readable(id));
        }
        self.early = self.early + stream.inbox.held - held;
        self.pieces = self.pieces + stream.inbox.pieces() - pieces;
        if stream.ended() {
            self.forget_if_done(id);
        } else if stream.inbox.end() - stream.consumed > stream.window / 2 && stream.reader_keeps_up() {
            // Behind a hole that a slow path has yet to fill, the window would be used up, and no news of that comes in time.
            self.want_more(id);
        }
        Ok(())
    }

    fn on_end(&mut self, id: StreamId, length: u64) -> Result<(), Violation> {
        let Some(stream) = self.streams.get_mut(&id) else { return self.was_used(id) };
        if stream.reset.is_some() {
            return Ok(());
        }
        if stream.length.is_some() {
            return Err(Violation("a second end of a stream"));
        }
        if length < stream.inbox.end() || length > stream.granted {
            return Err(Violation("data beyond a stream's credit or end"));
        }
        stream.length = Some(length);
        if stream.ended() {
            self.events.push(Event::Readable(id));
            self.forget_if_done(id);
        }
        Ok(())
    }

    fn on_reset(&mut self, id: StreamId, reason: u8) -> Result<(), Violation> {
        let reason = *ResetReason::VARIANTS
            .get(usize::from(reason))
            .ok_or(Violation("an unknown reason to reset a stream"))?;
        if !self.opens && !self.heard.contains(&id) {
            // The other end gave the stream up before it said that there is one.
            return self.hear(id);
        }
        self.was_used(id)?;
        self.heard_of(id);
        if self.streams.get(&id).is_some_and(|stream| !stream.is_done()) {
            self.abandon(id, reason);
            self.unsay(id);
            self.events.push(Event::Reset(id));
            self.forget_if_done(id);
        }
        Ok(())
    }

    /// Whether `id` is a stream that may have been, or a violation.
    fn was_used(&self, id: StreamId) -> Result<(), Violation> {
        let used = if self.opens { id < self.next } else { self.heard.contains(&id) };
        if used { Ok(()) } else { Err(Violation("a stream that was never opened")) }
    }

    /// The other end uses the number of a stream.
    fn hear(&mut self, id: StreamId) -> Result<(), Violation> {
        if id == StreamId::MAX {
            return Err(Violation("a stream that it may not open"));
        }
        self.heard.insert(id..id + 1);
        // Numbers come in another order than they were given, but none is left out for ever.
        if self.heard.len() > MAX_GAPS.max(4 * self.limits.streams as usize) {
            return Err(Violation("streams in more pieces than paths could make"));
        }
        Ok(())
    }

    fn on_open(&mut self, id: StreamId, class: ServiceClass, target: &[u8]) -> Result<(), Violation> {
        if self.opens || self.heard.contains(&id) {
            return Err(Violation("a stream that it may not open"));
        }
        if self.control.len() > MAX_CONTROL.max(4 * self.limits.streams as usize) {
            return Err(Violation("streams opened faster than answers are read"));
        }
        self.hear(id)?;
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
                self.streams.insert(id, self.new_stream(class));
                self.events.push(Event::Open { stream: id, target });
            }
            Err(reason) => self.say_reset(id, reason),
        }
        Ok(())
    }
}

/// Frames that may wait for the other end to read.
const MAX_CONTROL: usize = 1024;
/// Gaps between the numbers of streams that have come.
const MAX_GAPS: usize = 4_096;
