//! The link of a comparison: out of one line, a trace, two rates or a preset, and the options beside them.

use std::path::Path;

use suimon_scenario::{Capacity, LinkSpec};
use suimon_units::{Duration, Rate};

use super::parsed::FromText;
use super::{Comparison, Parsed};
use crate::error::{StudyError, problem_of_link};

/// A network that many have, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// The name.
    pub name: &'static str,
    /// The link in one line.
    pub link: &'static str,
    /// The rate of the way back, where the line says none.
    back: Option<&'static str>,
    /// Flows in each direction.
    pub flows: u64,
    /// What it is.
    pub about: &'static str,
}

impl Preset {
    /// All presets.
    pub const ALL: [Self; 4] = [
        Self {
            name: "home",
            link: "50/10Mbit 30ms 1000packets",
            back: None,
            flows: 1,
            about: "a cable or DSL line: a download and an upload",
        },
        Self {
            name: "phone",
            link: "lte-walking 50ms 1000packets",
            back: Some("5Mbit"),
            flows: 1,
            about: "a phone on a synthetic LTE cell whose user walks: a download and an upload",
        },
        Self {
            name: "starlink",
            link: "100/12Mbit 45ms 1000packets loss=0.1% jitter=8ms",
            back: None,
            flows: 1,
            about: "a satellite line with jitter and some loss of its own: a download and an upload",
        },
        Self {
            name: "rrul",
            link: "20/5Mbit 60ms 1000packets",
            back: None,
            flows: 4,
            about: "flent's real-time response under load: four downloads and four uploads",
        },
    ];

    /// The link that it stands for.
    fn link(&self) -> LinkSpec {
        let mut spec = LinkSpec::parse(self.link).expect("a test reads each preset");
        spec.back = spec.back.or(self.back.map(|rate| rate.parse().expect("a test reads each preset")));
        spec
    }
}

impl FromText for Preset {
    fn from_text(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|preset| preset.name == text.to_ascii_lowercase()).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|preset| preset.name).collect();
            format!("unknown preset \"{text}\"; accepted: {}", names.join(", "))
        })
    }
}

/// A link in one line, whose round-trip time may stand in an option of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    spec: LinkSpec,
    has_rtt: bool,
}

impl FromText for Line {
    fn from_text(text: &str) -> Result<Self, String> {
        let read = LinkSpec::parse_partly(text).map_err(|error| problem_of_link(&error))?;
        Ok(Self { spec: read.0, has_rtt: read.1 })
    }
}

/// The round-trip time over a trace where none is given.
const RECORDED_RTT: Duration = Duration::from_millis(40);

/// What is said where no round-trip time is.
const RTT: &str = "missing; accepted: the round-trip time without queueing, such as 180ms, as in 2Mbit 180ms 96kB, \
                   or --rtt beside it";
/// The same where there is no line to hold it.
const RTT_ALONE: &str =
    "missing; accepted: the round-trip time without queueing, such as 60ms, as ping shows it on an idle line";

impl Comparison {
    /// The link that it is over, with all that options beside it say.
    ///
    /// # Errors
    /// When two options say the same, or no round-trip time is given.
    pub(super) fn spec(&self) -> Result<LinkSpec, StudyError> {
        let over = (&self.link, &self.line, &self.trace, &self.down, &self.preset);
        let (mut spec, has_rtt) = match over {
            (Some(line), None, None, None, None) => (line.spec.clone(), line.has_rtt),
            (None, Some(file), None, None, None) => (LinkSpec::of_scenario(file)?, true),
            (None, None, Some(trace), None, None) => (self.traced(trace)?, false),
            (None, None, None, Some(down), None) => {
                (LinkSpec::new(Capacity::Rate(**down), Duration::ZERO), false)
            }
            (None, None, None, None, Some(preset)) => (preset.link(), true),
            _ => {
                return Err(StudyError::input(
                    "link",
                    "accepted: one of link, line, trace, paths, preset and down",
                ));
            }
        };
        match (&self.rtt, has_rtt) {
            (Some(rtt), false) => spec.rtt = **rtt,
            (Some(_), true) => return Err(twice("rtt", &format!("a round-trip time of {}", spec.rtt))),
            (None, true) => {}
            (None, false) if self.trace.is_some() => {}
            (None, false) if self.down.is_some() => return Err(StudyError::input("rtt", RTT_ALONE)),
            (None, false) => return Err(StudyError::input("link", RTT)),
        }
        if let Some(up) = &self.up {
            if let Some(back) = spec.back {
                return Err(twice("up", &format!("a way back at {back}")));
            }
            spec.back = Some(**up);
        }
        for (name, text) in
            [("buffer", self.buffer.as_ref().map(ToString::to_string)), ("loss", self.loss.clone())]
        {
            let Some(text) = text else { continue };
            if spec.says(name) {
                return Err(twice(name, &format!("a {name} of its own")));
            }
            let set =
                if name == "buffer" { spec.set_buffer(&text) } else { spec.set_key(name, &text).map(|_| ()) };
            set.map_err(|error| StudyError::input(name, problem_of_link(&error)))?;
        }
        Ok(spec)
    }

    /// The link that `trace` recorded.
    fn traced(&self, trace: &Path) -> Result<LinkSpec, StudyError> {
        Ok(LinkSpec::recorded(trace, RECORDED_RTT)?)
    }

    /// The file of a line, and what it holds.
    fn line_title(&self) -> String {
        let file = self.line.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let Ok(spec) = self.spec() else { return file.into_owned() };
        let rates = [spec.link.capacity.mean_rate(), spec.back].into_iter().flatten();
        let rates: Vec<_> = rates.map(|rate| rate.to_string()).collect();
        format!("{file} ({}, {})", rates.join(" down, ") + " up", spec.rtt)
    }

    /// The link as a title names it: what was given, and the buffer, since grades follow from it.
    pub(super) fn link_title(&self) -> String {
        let shown =
            |value: &Option<Parsed<Rate>>| value.as_ref().map(ToString::to_string).unwrap_or_default();
        let mut words = Vec::new();
        match (&self.link, self.trace.as_ref().or(self.line.as_ref()), &self.preset) {
            (Some(line), _, _) => words.push(line.to_string()),
            (None, Some(_), _) if self.line.is_some() => words.push(self.line_title()),
            (None, Some(trace), _) => {
                words.push(trace.file_name().unwrap_or_default().to_string_lossy().into_owned());
                words.push(self.rtt.as_ref().map_or(RECORDED_RTT, |rtt| **rtt).to_string());
            }
            (None, None, Some(preset)) => words.push(format!("{} ({})", preset.name, preset.link)),
            (None, None, None) => words.push(shown(&self.down)),
        }
        if let Some(up) = self.up.as_ref().filter(|_| self.paths.is_none()) {
            words.push(format!("up {up}"));
        }
        if let (Some(rtt), true) = (&self.rtt, self.trace.is_none()) {
            words.push(rtt.to_string());
        }
        let spec = self.spec().ok();
        if let Some(buffer) = &self.buffer {
            words.push(buffer.to_string());
        } else if let Some(spec) = spec.filter(|spec| self.line.is_none() && !spec.says("buffer")) {
            words.push(format!("buffer {} (the default)", spec.link.buffer_text()));
        }
        if let Some(loss) = &self.loss {
            words.push(format!("loss={loss}"));
        }
        words.join(" ")
    }
}

/// A refusal of `field`, since the link has `what` already.
fn twice(field: &'static str, what: &str) -> StudyError {
    StudyError::input(field, format!("the link has {what} already; accepted: one of the two"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use suimon_scenario::Buffer;

    use super::super::tests::{comparison, refusal};
    use super::*;

    #[test]
    fn each_preset_is_a_link_with_a_way_back() {
        for preset in Preset::ALL {
            let spec = comparison(json!({ "preset": preset.name })).spec().unwrap();
            assert!(spec.back.is_some() && spec.says("buffer"), "{}", preset.name);
        }
    }

    #[test]
    fn options_beside_a_link_apply_to_it_and_stand_in_the_title() {
        let given = comparison(json!({ "link": "20Mbit 60ms", "buffer": "500packets", "loss": "1%" }));
        let spec = given.spec().unwrap();
        assert_eq!(spec.link.buffer, Buffer::Packets(500));
        assert_eq!(given.link_title(), "20Mbit 60ms 500packets loss=1%");
        let given = comparison(json!({ "down": "20Mbit", "up": "5Mbit", "rtt": "60ms" }));
        let spec = given.spec().unwrap();
        assert_eq!((spec.rtt, spec.back), (Duration::from_millis(60), Some(Rate::from_bps(5_000_000))));
        assert_eq!(given.link_title(), "20Mbit up 5Mbit 60ms buffer 1000 packets (the default)");
        let given = comparison(json!({ "link": "20Mbit", "rtt": "60ms" }));
        assert_eq!(given.spec().unwrap().rtt, Duration::from_millis(60));
    }

    #[test]
    fn what_the_link_says_already_is_refused() {
        for (fields, field, problem) in [
            (
                json!({ "link": "20Mbit 60ms 9kB", "buffer": "500packets" }),
                "buffer",
                "has a buffer of its own",
            ),
            (
                json!({ "link": "20Mbit 60ms", "rtt": "10ms" }),
                "rtt",
                "has a round-trip time of 60 ms already",
            ),
            (json!({ "link": "20Mbit 60ms loss=1%", "loss": "2%" }), "loss", "has a loss of its own"),
            (json!({ "link": "20/5Mbit 60ms", "up": "2Mbit" }), "up", "a way back at 5 Mbit/s already"),
            (json!({ "link": "20Mbit 60ms", "loss": "1" }), "loss", "may be meant as 1 % or as all"),
            (json!({ "link": "20Mbit 60ms", "buffer": "500" }), "buffer", "has no unit"),
            (json!({ "down": "20Mbit", "up": "5Mbit" }), "rtt", "missing; accepted: the round-trip time"),
            (json!({ "preset": "office" }), "preset", "accepted: home, phone, starlink, rrul"),
            (
                json!({ "preset": "home", "link": "1Mbit 1ms" }),
                "link",
                "one of link, line, trace, paths, preset and down",
            ),
        ] {
            let (found, message) = refusal(fields.clone());
            assert!(found == field && message.contains(problem), "{fields}: {found}: {message}");
        }
    }
}
