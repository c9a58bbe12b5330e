//! A receive buffer of fixed size, advertised in full.

use alloc::boxed::Box;

use suimon_units::Bytes;

use super::{ReceiveWindow, Received};
use crate::parameters::Arguments;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "fixed",
    summary: "advertises the whole receive buffer, always",
    source: "RFC 9293 §3.8.6",
    colour: "#bab0ac",
    parameters: &[],
};

/// Builds it over a receive buffer of `buffer`.
#[must_use]
pub fn build(buffer: Bytes, _arguments: &Arguments) -> Box<dyn ReceiveWindow> {
    Box::new(Fixed { buffer })
}

#[derive(Debug, Clone)]
struct Fixed {
    buffer: Bytes,
}

impl ReceiveWindow for Fixed {
    fn on_segment(&mut self, _segment: &Received) {}

    fn is_fixed(&self) -> bool {
        true
    }

    fn buffer(&self) -> Bytes {
        self.buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_buffer_is_advertised() {
        let window = build(Bytes::new(96_000), &Arguments::defaults(&[]));
        assert_eq!(window.buffer(), Bytes::new(96_000));
    }
}
