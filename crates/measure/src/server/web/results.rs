//! What browsers measured, for those who have its address.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};

use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::OwnedMutexGuard;

use crate::estimate::Line;
use crate::recording::Recording;

/// A file of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its name, as in `line.json`.
    pub name: String,
    /// Its media type, as in `application/json`.
    pub media_type: &'static str,
    /// What it holds.
    pub content: Vec<u8>,
}

/// Makes the files of a result out of a line, what was seen of it, and the name of the server.
pub type Render = fn(&Line, &Recording, &str) -> Vec<Document>;

/// The results of late, in memory.
pub(in crate::server) struct Results {
    render: Render,
    random: SystemRandom,
    turn: Arc<tokio::sync::Mutex<()>>,
    kept: Mutex<VecDeque<(String, Arc<Vec<Document>>)>>,
}

/// So many results are kept, of so many bytes in all; the oldest goes first. Each takes some 100 kB.
const KEPT: usize = 200;
const KEPT_BYTES: usize = 32 << 20;

impl Results {
    pub(in crate::server) fn new(render: Render) -> Self {
        Self { render, random: SystemRandom::new(), turn: Arc::default(), kept: Mutex::default() }
    }

    /// Held by who makes a result, so that the memory for it is needed once.
    pub(super) async fn turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.turn).lock_owned().await
    }

    /// Keeps the result of a measurement, and tells its name, which cannot be guessed.
    pub(super) fn keep(&self, line: &Line, recording: &Recording, to: &str) -> io::Result<String> {
        let mut bytes = [0; 10];
        self.random.fill(&mut bytes).map_err(|_| io::Error::other("no random numbers"))?;
        let name = super::sockets::hex(&bytes);
        let documents = Arc::new((self.render)(line, recording, to));
        let mut kept = self.kept.lock().expect("no one panics while holding it");
        kept.truncate(KEPT - 1);
        kept.push_front((name.clone(), documents));
        let size = |(_, documents): &(String, Arc<Vec<Document>>)| {
            documents.iter().map(|document| document.content.len()).sum::<usize>()
        };
        while kept.iter().map(size).sum::<usize>() > KEPT_BYTES {
            kept.pop_back();
        }
        Ok(name)
    }

    /// The files of a result.
    pub(super) fn find(&self, name: &str) -> Option<Arc<Vec<Document>>> {
        let kept = self.kept.lock().expect("no one panics while holding it");
        kept.iter().find(|(other, _)| other == name).map(|(_, documents)| Arc::clone(documents))
    }
}

impl fmt::Debug for Results {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Results").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Idle;

    #[test]
    fn the_newest_results_are_kept() {
        let render = |_: &Line, _: &Recording, to: &str| {
            vec![Document { name: to.to_owned(), media_type: "text/plain", content: Vec::new() }]
        };
        let results = Results::new(render);
        let idle = Idle {
            rtt_ms: 1.0,
            rtt_min_ms: 1.0,
            rtt_p95_ms: 1.0,
            jitter_ms: 0.0,
            loss_percent: 0.0,
            propagation_ms: 1.0,
        };
        let line = Line { idle, download: None, upload: None, first_hop: None };
        let names: Vec<_> =
            (0..=KEPT).map(|_| results.keep(&line, &Recording::default(), "far").unwrap()).collect();
        assert!(results.find(&names[0]).is_none(), "the oldest has gone");
        for name in &names[1..] {
            assert_eq!(results.find(name).unwrap()[0].name, "far");
        }
        assert!(results.find("").is_none());
        // One that takes half of the room leaves room for one.
        let large = |_: &Line, _: &Recording, to: &str| {
            vec![Document { name: to.to_owned(), media_type: "text/plain", content: vec![0; KEPT_BYTES / 2] }]
        };
        let results = Results::new(large);
        let names = [0; 3].map(|_| results.keep(&line, &Recording::default(), "far").unwrap());
        assert_eq!(names.map(|name| results.find(&name).is_some()), [false, true, true]);
    }
}
