//! Numbers in a grid, by colour.

use serde::{Serialize, Serializer};

/// Numbers of two axes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeatMap {
    /// The quantity of the numbers.
    pub group: String,
    /// The title of this map, among several maps of the same numbers.
    pub title: String,
    /// A hint for the reader, where the map needs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caption: Option<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Names of the rows, each with a number a column, where there is one.
    pub rows: Vec<(String, Vec<Option<Heat>>)>,
}

/// A number, and how it is coloured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Heat {
    /// The number.
    pub value: f64,
    /// From 0, cold, to 1, hot.
    pub heat: f64,
}

impl Heat {
    /// `value` on a scale from `cold` to `hot`.
    #[must_use]
    pub fn between(value: f64, (cold, hot): (f64, f64)) -> Self {
        Self { value, heat: ((value - cold) / (hot - cold)).clamp(0.0, 1.0) }
    }
}

impl Serialize for Heat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (format!("{:.2}", self.value), (self.heat * 100.0).round() as u8).serialize(serializer)
    }
}

/// Maps for a terminal of `width` columns: those with the same rows and columns side by side, as many as fit.
#[must_use]
pub fn terminal_heat_maps(maps: &[HeatMap], width: u16) -> String {
    let mut blocks: Vec<String> = Vec::new();
    let mut rest = maps;
    let mut group = None;
    while let Some(first) = rest.first() {
        if group != Some(&first.group) {
            blocks.push(first.group.clone());
            group = Some(&first.group);
        }
        let names = first.rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
        let cell = first.columns.iter().map(|name| name.chars().count().max(4) + 1).collect::<Vec<_>>();
        let block: usize = cell.iter().sum::<usize>() + 2;
        let fit = (usize::from(width).saturating_sub(names) / block).max(1);
        let alike = |map: &&HeatMap| {
            map.group == first.group
                && map.columns == first.columns
                && map.rows.iter().map(|(name, _)| name).eq(first.rows.iter().map(|(name, _)| name))
        };
        let beside: Vec<_> = rest.iter().take_while(alike).take(fit).collect();
        rest = &rest[beside.len()..];
        let line = |name: &str, parts: &mut dyn FnMut(&HeatMap) -> String| {
            let parts: String = beside.iter().map(|map| parts(map)).collect();
            format!("{name:names$}{parts}").trim_end().to_owned()
        };
        let mut lines = vec![
            line("", &mut |map| format!("   {:width$}", map.title, width = block - 3)),
            line("", &mut |map| {
                let cells = map.columns.iter().zip(&cell).map(|(name, cell)| format!("{name:>cell$}"));
                format!("  {}", cells.collect::<String>())
            }),
        ];
        for (row, (name, _)) in first.rows.iter().enumerate() {
            lines.push(line(name, &mut |map| {
                let cells = map.rows[row].1.iter().zip(&cell).map(|(heat, cell)| {
                    let text = heat.map_or_else(|| "-".to_owned(), |heat| format!("{:.2}", heat.value));
                    format!("{text:>cell$}")
                });
                format!("  {}", cells.collect::<String>())
            }));
        }
        blocks.push(lines.join("\n"));
    }
    blocks.join("\n\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(title: &str, values: [f64; 2]) -> HeatMap {
        let cells = values.map(|value| Some(Heat::between(value, (0.0, 1.0)))).to_vec();
        HeatMap {
            group: "Share".to_owned(),
            title: title.to_owned(),
            caption: None,
            columns: vec!["64kB".to_owned(), "1MB".to_owned()],
            rows: vec![("reno".to_owned(), cells), ("cubic".to_owned(), vec![None, None])],
        }
    }

    #[test]
    fn maps_that_are_alike_stand_side_by_side_as_far_as_they_fit() {
        let maps = [map("ecf", [0.5, 1.25]), map("blest", [0.75, 1.0])];
        let wide = "Share\n\n        ecf         blest\n        64kB  1MB   64kB  1MB\n\
                    reno    0.50 1.25   0.75 1.00\ncubic      -    -      -    -\n";
        assert_eq!(terminal_heat_maps(&maps, 40), wide);
        assert_eq!(terminal_heat_maps(&maps, 20).matches("cubic").count(), 2);
    }

    #[test]
    fn heat_stays_within_its_scale() {
        let heat = |value| Heat::between(value, (0.5, 1.0)).heat;
        assert_eq!([0.2, 0.5, 0.75, 1.0, 1.3].map(heat), [0.0, 0.0, 0.5, 1.0, 1.0]);
    }
}
