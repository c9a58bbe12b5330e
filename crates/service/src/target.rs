//! The target of a stream.

use std::fmt;
use std::str::FromStr;

/// A host and a port, as the other end takes them: up to 255 visible ASCII characters, since it comes into logs and
/// terminals. Names of other scripts have an ASCII form (IDNA, RFC 5891).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target(String);

/// A text that names no [`Target`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no target; accepted: HOST:PORT, up to 255 visible ASCII characters, as in example.org:80")]
pub struct NoTarget;

impl Target {
    /// Bytes of the longest target.
    pub const MAX_LEN: usize = 255;

    /// A target that the other end sent.
    ///
    /// # Errors
    /// Where an end of this protocol would not send it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, NoTarget> {
        std::str::from_utf8(bytes).map_err(|_| NoTarget)?.parse()
    }

    /// The target as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Target {
    type Err = NoTarget;

    fn from_str(text: &str) -> Result<Self, NoTarget> {
        let is_plain = text.chars().all(|c| c.is_ascii_graphic());
        if is_plain && !text.is_empty() && text.len() <= Self::MAX_LEN {
            Ok(Self(text.to_owned()))
        } else {
            Err(NoTarget)
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_short_and_visible() {
        for text in ["example.org:80", "[::1]:443", &"x".repeat(Target::MAX_LEN)] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
        for text in
            ["", "a b:80", "a\n:80", "\u{7f}:80", "bücher.example:80", &"x".repeat(Target::MAX_LEN + 1)]
        {
            assert_eq!(text.parse::<Target>(), Err(NoTarget), "{text:?}");
        }
        assert_eq!(Target::from_bytes(b"\xff:80"), Err(NoTarget));
    }
}
