//! The guide says what the reader does.

use suimon_scenario::Document;

fn guide() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenarios.md");
    std::fs::read_to_string(path).unwrap()
}

fn example(guide: &str) -> &str {
    guide.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap()
}

#[test]
fn its_example_makes_the_runs_that_it_says() {
    let guide = guide();
    let runs = Document::parse(example(&guide), "wired.toml").unwrap().runs().unwrap();
    assert!(guide.contains("= 27 runs"));
    assert_eq!(runs.len(), 27);
    assert_eq!(runs[0].scenario.flows.len(), 4);
}

#[test]
fn its_errors_are_those_that_are_given() {
    let guide = guide();
    for (from, to) in [
        ("\"50 packets\"", "\"50\""),
        ("rate = \"64kbit\"", "rat = \"64kbit\""),
        ("to = \"r2\"", "to = \"r3\""),
        ("set = \"link.bottleneck.rate\"", "set = \"link.botleneck.rate\""),
    ] {
        let text = example(&guide).replacen(from, to, 1);
        let error = Document::parse(&text, "wired.toml").and_then(|document| document.runs()).unwrap_err();
        // The guide may cut a list short.
        let told = guide.lines().any(|line| {
            let line = line.strip_suffix("...").unwrap_or(line);
            line.len() > 40 && error.to_string().starts_with(line)
        });
        assert!(told, "docs/scenarios.md lacks: {error}");
    }
}
