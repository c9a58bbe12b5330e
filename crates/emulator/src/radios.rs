//! Radios that serve the directions of links, driven by real time.

use suimon_model::{Link, radios};
use suimon_radio::{PortId, Ports, Radio};
use suimon_units::{Bytes, Instant};

use crate::direction::Direction;

/// Radios, and the directions that they serve: there and back of one link after the other.
#[derive(Debug, Default)]
pub(crate) struct Radios(Vec<Serving>);

#[derive(Debug)]
struct Serving {
    radio: Box<dyn Radio>,
    /// The direction that each port serves.
    directions: Vec<usize>,
}

/// Links that share a radio, by their places among all, or one that shares none.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) links: Vec<usize>,
    pub(crate) radios: Radios,
}

/// All links, those together that share a radio; these are their `directions`, there and back of one after the other.
pub(crate) fn groups(directions: &[Link], seed: u64) -> Vec<Group> {
    let radios = radios(directions, seed);
    // Each link with the first of its group.
    let mut firsts: Vec<usize> = (0..directions.len() / 2).collect();
    for (_, served) in &radios {
        let joined: Vec<_> = served.iter().map(|direction| firsts[direction / 2]).collect();
        let first = joined.iter().copied().min().unwrap_or_default();
        firsts.iter_mut().filter(|of| joined.contains(of)).for_each(|of| *of = first);
    }
    let mut groups: Vec<Group> = Vec::new();
    let mut places = vec![(0, 0); firsts.len()];
    for (link, first) in firsts.iter().enumerate() {
        let place = if *first == link { groups.len() } else { places[*first].0 };
        if place == groups.len() {
            groups.push(Group { links: Vec::new(), radios: Radios::default() });
        }
        places[link] = (place, groups[place].links.len());
        groups[place].links.push(link);
    }
    for (radio, served) in radios {
        let Some(group) = served.first().map(|direction| places[direction / 2].0) else { continue };
        let directions = served.iter().map(|direction| 2 * places[direction / 2].1 + direction % 2).collect();
        groups[group].radios.0.push(Serving { radio, directions });
    }
    groups
}

impl Radios {
    /// A packet has come to wait in `direction`.
    pub(crate) fn on_waiting(&mut self, now: Instant, direction: usize) {
        for serving in &mut self.0 {
            if let Some(port) = serving.directions.iter().position(|served| *served == direction) {
                serving.radio.on_waiting(now, PortId(port));
            }
        }
    }

    pub(crate) fn next_event(&self) -> Instant {
        let next = self.0.iter().filter_map(|serving| serving.radio.next_event()).min();
        next.unwrap_or(Instant::MAX)
    }

    /// Does everything that was due by `now`, each at its time.
    pub(crate) fn proceed(&mut self, now: Instant, directions: &mut [Direction]) {
        for Serving { radio, directions: served } in &mut self.0 {
            while let Some(due) = radio.next_event().filter(|due| *due <= now) {
                radio.on_event(due, &mut Served { served, directions });
            }
        }
    }
}

struct Served<'a> {
    served: &'a [usize],
    directions: &'a mut [Direction],
}

impl Ports for Served<'_> {
    fn is_waiting(&self, port: PortId) -> bool {
        self.directions[self.served[port.0]].is_waiting()
    }

    fn take(&mut self, now: Instant, port: PortId) -> Option<Bytes> {
        self.directions[self.served[port.0]].hand_over(now)
    }

    fn deliver(&mut self, at: Instant, port: PortId) {
        self.directions[self.served[port.0]].carried(at);
    }

    fn give_up(&mut self, at: Instant, port: PortId) {
        self.directions[self.served[port.0]].not_carried(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_scenario::Document;

    #[test]
    fn links_that_share_a_cell_are_moved_together_and_others_alone() {
        let mut text = String::from("[[cell]]\nname = \"x\"\n[[cell]]\nname = \"y\"\n");
        for (name, cell) in
            [("a", ", cell = \"x\""), ("b", ""), ("c", ", cell = \"y\""), ("d", ", cell = \"x\"")]
        {
            let radio = format!("{{ profile = \"PA3\", geometry = \"10dB\"{cell} }}");
            text +=
                &format!("[[link]]\nname = \"{name}\"\nbetween = [\"bs\", \"{name}\"]\nhsdpa = {radio}\n");
        }
        text += "[[flow]]\nname = \"f\"\nfrom = \"bs\"\nto = \"a\"\n";
        let runs = Document::parse(&text, "test").unwrap().runs().unwrap();
        let groups = groups(&runs[0].scenario.links, 1);
        let found: Vec<_> = groups.iter().map(|group| group.links.as_slice()).collect();
        assert_eq!(found, [&[0, 3][..], &[1], &[2]]);
        let served = |group: &Group| -> Vec<Vec<usize>> {
            group.radios.0.iter().map(|serving| serving.directions.clone()).collect()
        };
        let served: Vec<_> = groups.iter().map(served).collect();
        assert_eq!(served, [vec![vec![0, 2]], vec![vec![0]], vec![vec![0]]]);
    }
}
