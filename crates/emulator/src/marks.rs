//! Times at which measurements begin anew: the end of the warm-up, and windows.

use suimon_model::Window;
use suimon_units::{Duration, Instant};

use crate::direction::Direction;
use crate::statistics::ClosedWindow;

/// The scope of totals and windows.
#[derive(Debug, Clone, Default)]
pub struct Measuring {
    /// Totals and percentiles count from here on.
    pub warmup: Duration,
    /// Statistics of every queue are kept over these.
    pub windows: Vec<Window>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    Close(usize),
    WarmupEnd,
    Open(usize),
}

/// The openings and closings that are due, and the windows that have closed.
#[derive(Debug)]
pub(crate) struct Marks {
    /// Latest first.
    due: Vec<(Instant, Mark)>,
    /// Windows that are open, and since when.
    open: Vec<(usize, Instant)>,
    pub(crate) closed: [Vec<ClosedWindow>; 2],
}

impl Marks {
    pub(crate) fn new(measuring: &Measuring) -> Self {
        let mut due = Vec::new();
        if measuring.warmup > Duration::ZERO {
            due.push((Instant::ZERO + measuring.warmup, Mark::WarmupEnd));
        }
        for (index, window) in measuring.windows.iter().enumerate() {
            due.extend([(window.from, Mark::Open(index)), (window.to, Mark::Close(index))]);
        }
        due.sort_unstable_by(|a, b| b.cmp(a));
        Self { due, open: Vec::new(), closed: [Vec::new(), Vec::new()] }
    }

    /// The time of the next mark.
    pub(crate) fn next(&self) -> Instant {
        self.due.last().map_or(Instant::MAX, |(at, _)| *at)
    }

    /// Passes the marks that are due by `now`; the queues are up to date.
    pub(crate) fn proceed(&mut self, now: Instant, directions: &mut [Direction]) {
        while let Some((_, mark)) = self.due.pop_if(|(at, _)| *at <= now) {
            match mark {
                Mark::WarmupEnd => {
                    directions.iter_mut().for_each(|direction| direction.begin_measuring(now));
                }
                Mark::Open(window) => {
                    self.open.push((window, now));
                    directions
                        .iter_mut()
                        .for_each(|direction| direction.passing.meter.open_window(now, window));
                }
                Mark::Close(window) => self.close(now, window, directions),
            }
        }
    }

    /// Closes the windows that are still open.
    pub(crate) fn close_all(&mut self, now: Instant, directions: &mut [Direction]) {
        while let Some((window, _)) = self.open.first().copied() {
            self.close(now, window, directions);
        }
    }

    fn close(&mut self, now: Instant, window: usize, directions: &mut [Direction]) {
        let Some(place) = self.open.iter().position(|(open, _)| *open == window) else { return };
        let (_, from) = self.open.remove(place);
        for (direction, closed) in directions.iter_mut().zip(&mut self.closed) {
            if let Some((_, queue)) = direction.passing.meter.close_window(now, window) {
                closed.push(ClosedWindow { window, from, to: now, queue });
            }
        }
    }
}
