//! The schema as a scenario file that explains every key.

use std::fmt::Write as _;

use super::keys::{AGGREGATE, CELL, FLOW, LINK, MATRIX, MEDIUM, REVERSE, SCENARIO, STACK, WINDOW};
use super::schema::{AnyKey, Form, Preset, Section};

/// A scenario file with every key, its default, what it takes and what it means. It parses as it is;
/// keys without a default stand in comments, with an example.
#[must_use]
pub fn print_defaults() -> String {
    let mut text = String::from(
        "# Every key of a scenario. Keys in comments have no default: what they show is an example.\n",
    );
    print(&mut text, "", &SCENARIO);
    let sections: [(_, &dyn Section); 9] = [
        ("[[link]]", &LINK),
        ("# [link.reverse]", &REVERSE),
        ("# [[cell]]", &CELL),
        ("# [[medium]]", &MEDIUM),
        ("[[flow]]", &FLOW),
        ("# [flow.stack]", &STACK),
        ("# [[aggregate]]", &AGGREGATE),
        ("# [[window]]", &WINDOW),
        ("# [[matrix]]", &MATRIX),
    ];
    for (header, section) in sections {
        let _ = write!(text, "\n{header}\n");
        // Below a table in a comment, every key is in one too.
        print(&mut text, if header.starts_with('#') { "# " } else { "" }, section);
    }
    text
}

fn print(text: &mut String, comment: &str, section: &dyn Section) {
    for key in section.keys() {
        // Tables that have a header of their own follow below.
        let has_header = matches!(key.form(), Form::Tables(_)) || matches!(key.name(), "reverse" | "stack");
        if !has_header {
            describe(text, comment, key);
        }
    }
}

fn describe(text: &mut String, comment: &str, key: &'static dyn AnyKey) {
    let (state, line) = match key.about().preset {
        Preset::Required(example) => ("Required.".to_owned(), format!("{comment}{} = {example}", key.name())),
        Preset::Unset { means, example } => {
            (format!("Left out: {means}."), format!("# {} = {example}", key.name()))
        }
        Preset::Text(value) => (String::new(), format!("{comment}{} = \"{value}\"", key.name())),
        Preset::Flag(value) => (String::new(), format!("{comment}{} = {value}", key.name())),
        Preset::Count(value) => (String::new(), format!("{comment}{} = {value}", key.name())),
    };
    text.push('\n');
    explain(text, "## ", key.about().help);
    explain(text, "## ", format!("Takes {}. {state}", key.accepted()).trim_end());
    inner(text, key);
    let _ = writeln!(text, "{line}");
}

/// Writes `words` in lines of at most a hundred characters, each after `indent`.
fn explain(text: &mut String, indent: &str, words: &str) {
    let mut line = String::from(indent.trim_end());
    for word in words.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > 100 {
            let _ = writeln!(text, "{line}");
            line = String::from(indent.trim_end());
        }
        // The first word of a line stands where the indent ends.
        line = if line == indent.trim_end() { format!("{indent}{word}") } else { format!("{line} {word}") };
    }
    let _ = writeln!(text, "{line}");
}

/// Keys of the small tables that are written in one line.
fn inner(text: &mut String, key: &'static dyn AnyKey) {
    for part in key.inner().into_iter().flat_map(<dyn Section>::keys) {
        let default = match part.about().preset {
            Preset::Text(value) => format!(" Default {value}."),
            Preset::Count(value) => format!(" Default {value}."),
            Preset::Unset { means, .. } => format!(" Left out: {means}."),
            _ => String::new(),
        };
        let words = format!("{}: {} Takes {}.{default}", part.name(), part.about().help, part.accepted());
        explain(text, "##   ", &words);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Document;
    use super::super::keys::flow::{GATEWAY, ON_OFF, UDP};
    use super::super::keys::link::{DETOUR, LOSS, REORDERING};
    use super::super::keys::radio::HSDPA;
    use super::super::testing::{FLOW as A_FLOW, LINK as A_LINK, one};
    use super::*;

    #[test]
    fn the_printed_defaults_are_a_scenario() {
        let runs = Document::parse(&print_defaults(), "defaults").unwrap().runs().unwrap();
        assert_eq!(runs.len(), 1);
    }

    #[test]
    fn what_is_printed_as_default_is_what_holds_where_nothing_is_written() {
        let mut printed =
            Document::parse(&print_defaults(), "test.toml").unwrap().runs().unwrap().remove(0).scenario;
        let bare = "[[link]]\nname = \"bottleneck\"\nbetween = [\"sender\", \"receiver\"]\n\
                    rate = \"2Mbit\"\n[[flow]]\nname = \"main\"\nfrom = \"sender\"\nto = \"receiver\"";
        let bare = one(&[bare]);
        printed.name.clone_from(&bare.name);
        assert_eq!(printed, bare);
    }

    const HEADER: &str = "| Key | Takes | Default | Meaning |\n| --- | --- | --- | --- |\n";

    /// In the order of the guide.
    const ALL: [&dyn Section; 17] = [
        &SCENARIO,
        &WINDOW,
        &LINK,
        &REVERSE,
        &HSDPA,
        &CELL,
        &MEDIUM,
        &LOSS,
        &REORDERING,
        &DETOUR,
        &FLOW,
        &STACK,
        &ON_OFF,
        &GATEWAY,
        &UDP,
        &AGGREGATE,
        &MATRIX,
    ];

    #[test]
    fn no_key_is_missing() {
        let text = print_defaults();
        for section in ALL {
            for key in section.keys() {
                if let Some(inner) = key.inner() {
                    let listed = ALL.iter().any(|section| section.names().eq(inner.names()));
                    assert!(listed, "the table {} is not in the list above", key.name());
                }
                let name = key.name();
                let found = [format!("{name} = "), format!("  {name}: "), format!("{name}]")];
                assert!(found.iter().any(|form| text.contains(form)), "{name}");
            }
        }
    }

    #[test]
    fn the_guide_has_a_row_for_every_key() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenarios.md");
        let mut guide = std::fs::read_to_string(path).unwrap();
        let mut written = String::new();
        for section in ALL {
            let mut table = String::from(HEADER);
            for key in section.keys() {
                let default = match key.about().preset {
                    Preset::Required(_) => "required".to_owned(),
                    Preset::Unset { means, .. } => means.to_owned(),
                    Preset::Text(value) => format!("`\"{value}\"`"),
                    Preset::Flag(value) => format!("`{value}`"),
                    Preset::Count(value) => format!("`{value}`"),
                };
                let takes = match key.form() {
                    Form::Tables(_) => "tables".to_owned(),
                    _ => key.accepted(),
                };
                let _ = writeln!(table, "| `{}` | {takes} | {default} | {} |", key.name(), key.about().help);
            }
            if std::env::var_os("SUIMON_WRITE_GUIDE").is_some() {
                // Tables stand in the order of the sections, and each ends with an empty line.
                let begins = guide.find(HEADER).unwrap_or_else(|| panic!("no table for\n{table}"));
                let ends = begins + guide[begins..].find("\n\n").unwrap() + 1;
                written += &guide[..begins];
                written += &table;
                guide.drain(..ends);
            } else {
                let how = "SUIMON_WRITE_GUIDE=1 writes it anew";
                assert!(guide.contains(&table), "docs/scenarios.md lacks ({how}):\n{table}");
            }
        }
        if !written.is_empty() {
            std::fs::write(path, written + &guide).unwrap();
        }
    }

    #[test]
    fn every_example_is_accepted() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("cellular.down"), "1\n").unwrap();
        std::fs::write(directory.path().join("rates.csv"), "time_s,rate_bps\n0,1\n").unwrap();
        let path = directory.path().join("example.toml");
        let accepts = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Document::read(&path).unwrap().runs().unwrap_or_else(|error| panic!("{error} in\n{text}"));
        };
        // Only what is required, so that keys excluding each other can be tried one by one.
        let link = A_LINK;
        let no_rate = A_LINK.replace("rate = \"1Mbit\"\n", "");
        let flow = A_FLOW.replace("cc = \"reno\"", "");
        let wlan = "[[medium]]\nname = \"wlan\"\nstandard = \"802.11b\"\nrate = \"11Mbit\"";
        let cases: [(&dyn Section, String, String); 10] = [
            (&SCENARIO, String::new(), format!("{link}\n{flow}")),
            (&LINK, link.to_owned(), format!("{wlan}\n{flow}")),
            (&REVERSE, format!("{link}\n[link.reverse]"), format!("{wlan}\n{flow}")),
            (&MEDIUM, format!("{link}\n{flow}\n{wlan}"), String::new()),
            (&CELL, format!("{link}\n{flow}\n[[cell]]\nname = \"downtown\""), String::new()),
            (
                &HSDPA,
                format!("{no_rate}\n[link.hsdpa]\nprofile = \"PA3\"\ngeometry = \"10dB\""),
                format!("[[cell]]\nname = \"downtown\"\n{flow}"),
            ),
            (&FLOW, format!("{link}\n{flow}"), String::new()),
            (&STACK, format!("{link}\n{flow}\n[flow.stack]"), String::new()),
            (
                &AGGREGATE,
                format!("{link}\n{flow}\n[[aggregate]]\nname = \"bulk\"\nflows = [\"main\"]"),
                String::new(),
            ),
            (
                &MATRIX,
                format!("{link}\n{flow}\n[[matrix]]\nset = \"duration\"\nvalues = [\"1s\", \"2s\"]"),
                String::new(),
            ),
        ];
        let halves = ["\"gateway\", \"receiver\"", "\"sender\", \"gateway\""];
        let half = |ends| link.replace("\"sender\", \"receiver\"", ends);
        let radio = half(halves[0]).replace("bottleneck", "radio");
        let split = format!("{}\n{radio}\n{flow}", half(halves[1]));
        for (section, before, after) in cases {
            for key in section.keys().filter(|key| !matches!(key.form(), Form::Tables(_))) {
                if let Preset::Unset { example, .. } = key.about().preset {
                    let before = match key.name() {
                        "trace" | "schedule" | "hsdpa" | "medium" | "shaper" if before == A_LINK => &no_rate,
                        "gateway" => &split,
                        _ => &before,
                    };
                    accepts(&format!("{before}\n{} = {example}\n{after}", key.name()));
                }
            }
        }
        accepts(&format!(
            "{link}\n{flow}\n[[matrix]]\nset = \"link.bottleneck.rate\"\nvalues = [\"64kbit\"]"
        ));
    }
}
