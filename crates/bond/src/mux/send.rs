//! What is sent next: groups of whole frames.

use std::collections::HashMap;

use super::packets::Packets;
use super::stream::Stream;
use super::turns::{Flow, Turns, Waiting};
use super::wire::{DATA_HEAD, PACKET_HEAD, head, kind, placed};
use super::{Class, Control, Event, MAX_GROUP, MAX_PACKET, Mux, ServiceClass, StreamId};
use crate::ring::Ring;

/// The streams and datagrams of one class, in turn.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) turns: Turns,
    packets: Packets,
}

impl Lane {
    /// Bytes of packets that wait.
    pub(super) fn packet_bytes(&self) -> u64 {
        self.packets.bytes()
    }

    /// Queues a packet, while no more than `most` bytes wait. False where it is lost.
    fn push(&mut self, packet: &[u8], most: u64) -> bool {
        let flow = self.packets.push(packet, most);
        flow.into_iter().for_each(|flow| self.turns.wake(Flow::Datagrams(flow)));
        flow.is_some()
    }

    /// What a flow has to send.
    fn waiting(&self, streams: &HashMap<StreamId, Stream>, flow: Flow) -> Waiting {
        waiting(streams, &self.packets, flow)
    }

    fn any(&self, streams: &HashMap<StreamId, Stream>) -> bool {
        self.turns.any(|flow| self.waiting(streams, flow))
    }

    /// The flow whose turn it is.
    fn next(&mut self, streams: &HashMap<StreamId, Stream>, class: Class) -> Option<Flow> {
        let packets = &self.packets;
        let waiting = |flow| waiting(streams, packets, flow);
        match class {
            Class::Urgent => self.turns.next_new(waiting),
            Class::Bulk => self.turns.next_old(waiting),
            Class::Realtime | Class::Redundant => {
                self.turns.next_new(waiting).or_else(|| self.turns.next_old(waiting))
            }
        }
    }
}

fn waiting(streams: &HashMap<StreamId, Stream>, packets: &Packets, flow: Flow) -> Waiting {
    match flow {
        Flow::Stream(id) => streams.get(&id).map_or(Waiting::Nothing, Stream::waiting),
        Flow::Datagrams(flow) if packets.next_len(flow).is_some() => Waiting::Ready,
        Flow::Datagrams(_) => Waiting::Nothing,
    }
}

impl Mux {
    /// Queues an IP packet of a class. False where it is lost, as too many wait.
    pub fn send_packet(&mut self, class: ServiceClass, packet: &[u8]) -> bool {
        packet.len() <= MAX_PACKET && self.lanes[class as usize].push(packet, self.limits.packets)
    }

    /// Whether there is something to send.
    #[must_use]
    pub fn has_data(&self) -> bool {
        !self.control.is_empty() || self.lanes.iter().any(|lane| lane.any(&self.streams))
    }

    /// Whether a flow of a class has something to send.
    #[must_use]
    pub fn has_data_of(&self, class: ServiceClass) -> bool {
        self.lanes[class as usize].any(&self.streams)
    }

    /// Whether something waits for no other of the default class.
    #[must_use]
    pub fn has_urgent(&self) -> bool {
        !self.control.is_empty() || self.has_young()
    }

    /// Whether a flow of the default class has something to send that begins, or that sends little.
    #[must_use]
    pub fn has_young(&self) -> bool {
        let lane = &self.lanes[ServiceClass::Default as usize];
        lane.turns.any_new(|flow| lane.waiting(&self.streams, flow))
    }

    /// Appends a group of whole frames to the aggregate, of up to `most` bytes where no single frame is longer. Frames of a
    /// group stay together. False where there is none to send.
    pub fn produce(&mut self, out: &mut Ring, most: usize, class: Class) -> bool {
        let begin = out.end();
        loop {
            let used = (out.end() - begin) as usize;
            let left = most.saturating_sub(used);
            if used > 0 && left < LEAST_LEFT {
                return true;
            }
            if class == Class::Urgent && !self.control.is_empty() {
                self.push_control(out, begin, left);
                continue;
            }
            let flow = self.lanes[class.service() as usize].next(&self.streams, class);
            let before = out.end();
            let sent = match flow {
                Some(Flow::Stream(id)) => self.push_stream(id, out, left),
                Some(Flow::Datagrams(flow)) => {
                    self.push_packet(class.service(), flow, out, if used > 0 { left } else { MAX_GROUP })
                }
                None => false,
            };
            if !sent {
                return used > 0;
            }
            let turns = &mut self.lanes[class.service() as usize].turns;
            let bytes = (out.end() - before) as usize;
            flow.into_iter().for_each(|flow| turns.spend(flow, bytes));
            if matches!(class, Class::Realtime | Class::Redundant) {
                // It waits for nothing else.
                turns.on_sent(bytes);
            }
        }
    }

    /// A path was given `bytes` that had been in turn.
    pub fn on_sent(&mut self, bytes: usize) {
        self.lanes[ServiceClass::Default as usize].turns.on_sent(bytes);
    }

    /// Appends the next control frame. The first data of a stream goes with what opens it.
    fn push_control(&mut self, out: &mut Ring, group: u64, left: usize) {
        let Some(((id, control), frame)) = self.control.pop_first() else { return };
        out.push(&frame);
        match control {
            Control::Reset => self.forget_if_done(id),
            Control::Open => {
                self.opening.insert(id, group);
                let left = left.saturating_sub(frame.len());
                if left >= LEAST_LEFT {
                    self.push_stream(id, out, left);
                }
            }
            Control::Opened | Control::Credit | Control::Blocked => {}
        }
    }

    /// Appends data of a stream that has some and credit for it, or its end. False where it has neither.
    fn push_stream(&mut self, id: StreamId, out: &mut Ring, left: usize) -> bool {
        let share = self.share();
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.reset.is_none()) else {
            return false;
        };
        let credit = usize::try_from(stream.limit - stream.sent).unwrap_or(usize::MAX);
        let len = stream.queue.len().min(credit).min(left.saturating_sub(DATA_HEAD).clamp(1, MAX_FRAME));
        if len == 0 {
            let ends = stream.ending && !stream.end_sent && stream.queue.is_empty();
            if ends {
                out.push(&placed(kind::END, id, stream.sent));
                stream.end_sent = true;
                self.forget_if_done(id);
            }
            return ends;
        }
        out.push(&placed(kind::DATA, id, stream.sent));
        out.push(&(len as u16).to_be_bytes());
        let (first, second) = stream.queue.as_slices();
        let from_first = len.min(first.len());
        out.push(&first[..from_first]);
        out.push(&second[..len - from_first]);
        stream.queue.drain(..len);
        stream.sent += len as u64;
        self.queued -= len as u64;
        if stream.queue.capacity() > 2 * share {
            // Of a time when fewer streams shared the memory.
            stream.queue.shrink_to(share);
        }
        if stream.writer_waits && stream.queue.len() <= share / 2 {
            stream.writer_waits = false;
            self.events.push(Event::Writable(id));
        }
        let blocked = stream.sent == stream.limit && !stream.queue.is_empty();
        if blocked && stream.blocked_at != Some(stream.limit) {
            stream.blocked_at = Some(stream.limit);
            self.control.insert((id, Control::Blocked), head(kind::BLOCKED, id));
        }
        true
    }

    /// Appends the next packet of a flow, if it takes no more than `left`.
    fn push_packet(&mut self, class: ServiceClass, flow: u16, out: &mut Ring, left: usize) -> bool {
        let packets = &mut self.lanes[class as usize].packets;
        if packets.next_len(flow).is_none_or(|len| len + PACKET_HEAD > left) {
            return false;
        }
        let Some(packet) = packets.pop(flow) else { return false };
        out.push(&[kind::PACKET, class as u8]);
        out.push(&(packet.len() as u16).to_be_bytes());
        out.push(&packet);
        true
    }
}

/// A group that has less left than this is full: a frame of so few bytes would be half head.
const LEAST_LEFT: usize = 4 * DATA_HEAD;
/// Data of one frame at most.
const MAX_FRAME: usize = u16::MAX as usize;
