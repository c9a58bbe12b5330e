//! Text forms that the file format and the shorthand share.

use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::error::Problem;
use suimon_model::{Buffer, Outage};

/// What a buffer may be, in words.
pub(crate) const BUFFER: &str = "packets or bytes, such as \"50 packets\" or \"96kB\", or \"unbounded\"";

/// What outages may be, in words.
pub(crate) const OUTAGES: &str =
    "periods from one time to a later one, such as [\"10s..15s\", \"40s..\"], or one";

/// The buffer of a link where none is given: the queue length of a Linux interface.
pub(crate) const DEFAULT_BUFFER: &str = "1000 packets";

/// The receive buffer where none is given: what Linux grows one to (`tcp_rmem`).
pub const DEFAULT_WINDOW: &str = "6MiB";

/// What the flows of a stream may hold each, and what may wait at its receiver, where nothing is given.
pub const DEFAULT_STREAM_BUFFER: &str = "4MiB";

/// The path scheduler where none is given.
pub(crate) const DEFAULT_SCHEDULER: &str = "look-ahead";

/// How long a flow of a stream may be silent before it is connected anew.
pub const DEFAULT_PATIENCE: &str = "3s";

/// Longest text that stands for a value; more is not worth repeating in a message.
pub(crate) const MAX_LENGTH: usize = 200;

/// Refuses text that nothing accepts and no message should repeat.
pub(crate) fn bounded(text: &str) -> Result<&str, Problem> {
    if text.len() <= MAX_LENGTH {
        return Ok(text);
    }
    let start: String = text.chars().take(20).collect();
    Err(Problem::Value {
        text: format!("{start}..."),
        reason: "is too long",
        accepted: format!("at most {MAX_LENGTH} characters"),
    })
}

/// Reads `50 packets`, `96kB` or `unbounded`.
pub(crate) fn buffer(text: &str) -> Result<Buffer, Problem> {
    let text = text.trim();
    if text == "unbounded" {
        return Ok(Buffer::Unbounded);
    }
    let refuse = |reason| Problem::Value { text: text.to_owned(), reason, accepted: BUFFER.to_owned() };
    let packets = ["packets", "packet", "pkts"].iter().find_map(|unit| text.strip_suffix(unit));
    let buffer = match packets.map(str::trim) {
        Some("") => return Err(refuse("does not start with a number")),
        Some(count) if count.starts_with('-') => return Err(refuse("is negative")),
        Some(count) => {
            Buffer::Packets(count.parse().map_err(|_| refuse("is not a whole number of packets"))?)
        }
        None if text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty() => {
            return Err(refuse("has no unit"));
        }
        None => Buffer::Bytes(text.parse::<Bytes>().map_err(|_| refuse("is not a buffer"))?),
    };
    Ok(buffer)
}

/// Reads `50 packets`, `96kB` or `unbounded`.
///
/// # Errors
/// When it is none of those.
pub fn parse_buffer(text: &str) -> Result<Buffer, Problem> {
    bounded(text).and_then(buffer)
}

/// Reads a period such as `10s..15s`, or `40s..` for one that lasts.
pub(crate) fn outage(text: &str) -> Result<Outage, Problem> {
    let Some((from, to)) = text.split_once("..") else {
        let accepted = OUTAGES.to_owned();
        return Err(Problem::Value { text: text.to_owned(), reason: "is not a period", accepted });
    };
    let instant = |text: &str| -> Result<Instant, Problem> {
        Ok(Instant::ZERO + text.trim().parse::<Duration>().map_err(Problem::Unit)?)
    };
    let to = if to.trim().is_empty() { Instant::MAX } else { instant(to)? };
    Ok(Outage { from: instant(from)?, to })
}

/// Reads a rate above zero.
pub(crate) fn rate(text: &str) -> Result<Rate, Problem> {
    let rate: Rate = text.parse()?;
    if rate == Rate::ZERO {
        return Err(Problem::Value {
            text: text.to_owned(),
            reason: "is no rate at which anything moves",
            accepted: "rates above zero".to_owned(),
        });
    }
    Ok(rate)
}

/// Reads a rate above zero or `unlimited`.
pub(crate) fn link_rate(text: &str) -> Result<Rate, Problem> {
    if text.trim() == "unlimited" { Ok(Rate::MAX) } else { rate(text) }
}

/// Whether `name` can be part of a key path.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_packets_bytes_or_unbounded() {
        assert_eq!(buffer("50 packets"), Ok(Buffer::Packets(50)));
        assert_eq!(buffer("1packet"), Ok(Buffer::Packets(1)));
        assert_eq!(buffer("96kB"), Ok(Buffer::Bytes(Bytes::new(96_000))));
        assert_eq!(buffer(" unbounded"), Ok(Buffer::Unbounded));
        for text in ["", "50", "packets", "-5 packets", "1.5 packets", "99999999999999999999 packets", "x"] {
            let message = buffer(text).unwrap_err().to_string();
            assert!(message.contains("accepted: packets or bytes"), "{message}");
        }
        assert!(buffer("50").unwrap_err().to_string().contains("has no unit"));
    }

    #[test]
    fn a_rate_of_nothing_is_refused_and_unlimited_is_a_link_rate_only() {
        assert!(rate("0Mbit").is_err());
        assert!(rate("0.1bit").is_err());
        assert!(rate("unlimited").is_err());
        assert_eq!(link_rate("unlimited"), Ok(Rate::MAX));
        assert_eq!(DEFAULT_WINDOW.parse(), Ok(Bytes::new(6 * 1024 * 1024)));
        assert!(buffer(DEFAULT_BUFFER).is_ok());
    }

    #[test]
    fn long_text_is_cut_in_the_message() {
        assert!(bounded(&"é".repeat(101)).unwrap_err().to_string().len() < 200);
        assert_eq!(bounded("short"), Ok("short"));
    }
}
