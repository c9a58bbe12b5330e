//! The lines themselves.

use std::collections::{BTreeMap, BTreeSet};

use suimon_algorithms::parameters::{Range, Value};
use suimon_algorithms::queue::Buffer;
use suimon_algorithms::random::RandomStream;
use suimon_algorithms::registry::{Role, build_queue, descriptions};
use suimon_units::Bytes;

use super::endpoint::{Endpoint, Event};
use super::queue::TestPacket;
use super::spec;

#[test]
fn everything_builds_with_its_defaults_and_its_label_is_its_name() {
    for &role in Role::ALL {
        for description in descriptions(role) {
            let spec = spec(role, description.name);
            assert_eq!(spec.label(), description.name);
            match role {
                Role::Congestion => drop(spec.build_congestion()),
                Role::Receiver => drop(spec.build_receiver(Bytes::new(96_000))),
                Role::Path => drop(spec.build_path()),
                Role::Queue => {
                    drop(build_queue::<TestPacket>(&spec, Buffer::Packets(10), RandomStream::new(1, "")));
                }
                Role::Estimator => drop(spec.build_estimator()),
                Role::Shaper => drop(spec.build_shaper()),
            }
        }
    }
}

#[test]
fn parameters_have_help_a_default_in_range_and_a_name_of_their_own() {
    for description in Role::ALL.iter().copied().flat_map(descriptions) {
        let mut names = BTreeSet::new();
        for parameter in description.parameters {
            let place = format!("{}:{}", description.name, parameter.name);
            assert!(!parameter.help.is_empty(), "{place}");
            assert!(names.insert(parameter.name), "{place} twice");
            assert_eq!(parameter.parse(&parameter.default.to_string()), Ok(parameter.default), "{place}");
            let one_of = matches!(parameter.range, Range::OneOf(_));
            let between = matches!(parameter.range, Range::Between(..));
            match parameter.default {
                Value::Choice(_) => assert!(one_of, "{place}: a choice has words"),
                Value::Count(_) | Value::Number(_) => assert!(!one_of, "{place}: a number has no words"),
                _ => assert!(!one_of && !between, "{place}: the range would not be checked"),
            }
        }
    }
}

#[test]
fn the_bounds_of_every_range_build_too() {
    for &role in Role::ALL {
        for description in descriptions(role) {
            for parameter in description.parameters {
                let values: Vec<String> = match parameter.range {
                    Range::Between(low, high) => vec![low.to_string(), high.to_string()],
                    Range::OneOf(words) => words.iter().map(ToString::to_string).collect(),
                    Range::Any => continue,
                };
                for value in values {
                    let spec = spec(role, &format!("{}:{}={value}", description.name, parameter.name));
                    if role == Role::Congestion {
                        let mut endpoint = Endpoint::new(&spec, 10);
                        for step in 0..2_000 {
                            endpoint.apply(&Event::plain_ack(step % 97 == 96)).unwrap();
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn names_are_unique_within_a_role() {
    for &role in Role::ALL {
        let mut names = BTreeSet::new();
        for description in descriptions(role) {
            assert!(names.insert(description.name), "{role} {} twice", description.name);
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
            assert!(description.name.chars().all(plain), "{}", description.name);
            assert!(!description.summary.is_empty() && !description.source.is_empty());
        }
    }
}

#[test]
fn colours_tell_congestion_controls_apart() {
    let mut colours = BTreeMap::new();
    for &role in Role::ALL {
        for description in descriptions(role) {
            let digits = description.colour.strip_prefix('#').unwrap_or_default();
            let valid =
                digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
            assert!(valid, "{}: {}", description.name, description.colour);
            if role == Role::Congestion {
                let other = colours.insert(description.colour, description.name);
                assert_eq!(other, None, "{} has the same colour", description.name);
            }
        }
    }
}
