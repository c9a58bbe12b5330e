//! The data that the application has to send.

use suimon_units::{Bytes, Duration, Instant, Rate};

/// The sending application: how many bytes it has produced by a given time.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    size: Option<Bytes>,
    rate: Option<Rate>,
    /// The time since when it produces, `None` while silent.
    since: Option<Instant>,
    /// Bytes produced in earlier periods.
    produced: u64,
    /// The total of bytes, once nothing more comes.
    ended_at: Option<u64>,
    /// The application is a layer above, see [`Source::feed`].
    fed: bool,
}

impl Source {
    /// An application with `size` bytes in all (`None` for no end), which come at `rate` (`None` for
    /// all at once).
    pub(crate) fn new(size: Option<Bytes>, rate: Option<Rate>) -> Self {
        // At an unlimited rate everything is there at once.
        let rate = rate.filter(|rate| *rate != Rate::MAX);
        Self { size, rate, since: None, produced: 0, ended_at: size.map(Bytes::get), fed: false }
    }

    /// An application that is a layer above: it has the bytes that [`Source::feed`] gives it.
    pub(crate) fn fed() -> Self {
        Self { fed: true, ..Self::new(None, None) }
    }

    /// An application that is the first half of a split connection, which has `size` bytes in all.
    pub(crate) fn split(size: Option<Bytes>) -> Self {
        Self { fed: true, ..Self::new(size, None) }
    }

    /// Nothing comes after the `total` bytes that the first half of a split connection took before it was stopped.
    pub(crate) fn end_at(&mut self, total: u64) {
        self.ended_at = Some(total);
    }

    /// The application of another connection that goes on with what this one had not handed over.
    pub(crate) fn anew(&self) -> Self {
        let left = self.size.map(|size| Bytes::new(size.get().saturating_sub(self.produced)));
        Self { fed: self.fed, ..Self::new(left, self.rate) }
    }

    /// Adds bytes to be sent.
    pub(crate) fn feed(&mut self, more: Bytes) {
        self.produced += more.get();
    }

    /// The application starts to produce.
    pub(crate) fn resume(&mut self, now: Instant) {
        if !self.fed {
            self.since.get_or_insert(now);
        }
    }

    /// The application falls silent; `taken` bytes had been handed over.
    pub(crate) fn pause(&mut self, now: Instant, taken: u64) {
        self.produced = if self.rate.is_some() { self.available(now) } else { taken };
        self.since = None;
    }

    /// The application ends for good; `taken` bytes had been handed over, and the rest is not sent.
    pub(crate) fn end(&mut self, taken: u64) {
        self.since = None;
        self.produced = taken;
        self.ended_at = Some(taken);
    }

    /// Whether the application has a size and was not ended before that.
    pub(crate) fn will_complete(&self) -> bool {
        self.size.is_some_and(|size| self.ended_at == Some(size.get()))
    }

    pub(crate) fn is_active(&self) -> bool {
        self.since.is_some()
    }

    /// Bytes produced by `now`, from the start of the connection.
    pub(crate) fn available(&self, now: Instant) -> u64 {
        let end = self.ended_at.unwrap_or(u64::MAX);
        let produced = match (self.since, self.rate) {
            (None, _) => self.produced,
            (Some(_), None) => u64::MAX,
            (Some(since), Some(rate)) => {
                self.produced.saturating_add(rate.amount_in(now.saturating_since(since)).get())
            }
        };
        produced.min(end)
    }

    /// When there will be `wanted` bytes beyond the `taken` ones, or all that will ever be; `None` where
    /// nothing more is in sight.
    pub(crate) fn more_at(&self, taken: u64, wanted: u64) -> Option<Instant> {
        let (since, rate) = (self.since?, self.rate?);
        let end = self.ended_at.unwrap_or(u64::MAX);
        if taken >= end {
            return None;
        }
        let missing = (taken + wanted).min(end).checked_sub(self.produced)?;
        let time = rate.transmission_time(Bytes::new(missing));
        (time != Duration::MAX).then(|| since + time)
    }

    /// The bytes that it will ever produce, where known.
    pub(crate) fn end_position(&self) -> Option<u64> {
        self.ended_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn an_unlimited_application_has_everything_at_once_up_to_its_size() {
        let mut source = Source::new(Some(Bytes::new(10_000)), None);
        assert_eq!(source.available(ms(0)), 0);
        source.resume(ms(0));
        assert_eq!(source.available(ms(0)), 10_000);
    }

    #[test]
    fn a_rate_limited_application_tells_when_its_next_bytes_come() {
        let mut source = Source::new(None, Some(Rate::from_bps(8_000)));
        source.resume(ms(1_000));
        assert_eq!(source.available(ms(2_000)), 1_000);
        let at = source.more_at(500, 1_000).unwrap();
        assert_eq!(at, ms(2_500));
        assert!(source.available(at) >= 1_500);
    }

    #[test]
    fn nothing_comes_after_the_last_byte() {
        let mut source = Source::new(Some(Bytes::new(1_500)), Some(Rate::from_bps(8_000)));
        source.resume(ms(0));
        assert_eq!(source.more_at(1_000, 1_000), Some(ms(1_500)), "the last 500 bytes");
        assert_eq!(source.more_at(1_500, 1_000), None);
        let mut endless = Source::new(None, Some(Rate::from_bps(8_000)));
        endless.resume(ms(0));
        endless.end(500);
        assert_eq!(endless.more_at(500, 1_000), None);
    }

    #[test]
    fn silence_keeps_what_was_taken_and_produces_nothing_more() {
        let mut source = Source::new(None, None);
        source.resume(ms(0));
        source.pause(ms(10), 5_000);
        assert_eq!(source.available(ms(20)), 5_000);
        source.resume(ms(30));
        assert_eq!(source.available(ms(30)), u64::MAX);
        source.end(7_000);
        assert_eq!((source.available(ms(50)), source.end_position()), (7_000, Some(7_000)));
    }
}
