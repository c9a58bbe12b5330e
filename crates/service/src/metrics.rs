//! Metrics in the text format that Prometheus reads.

use std::fmt::Write as _;

/// A text of metrics whose names all begin alike.
#[derive(Debug, Clone)]
pub struct Metrics {
    prefix: &'static str,
    text: String,
}

impl Metrics {
    /// A text without metrics; each name will begin with `prefix`, as in `suimon_bond`.
    #[must_use]
    pub fn new(prefix: &'static str) -> Self {
        Self { prefix, text: String::new() }
    }

    /// Adds the metric `name` of the kind `gauge` or `counter`, what it means, and its values, each with names and values of
    /// labels. Labels' values are escaped.
    pub fn add<'a, const N: usize>(
        &mut self,
        (name, kind, help): (&str, &str, &str),
        samples: impl IntoIterator<Item = ([(&'a str, String); N], f64)>,
    ) {
        let Self { prefix, text } = self;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# HELP {prefix}_{name} {help}\n# TYPE {prefix}_{name} {kind}");
        for (labels, value) in samples {
            let labels: Vec<_> =
                labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = writeln!(text, "{prefix}_{name}{labels} {value}");
        }
    }

    /// The text.
    #[must_use]
    pub fn finish(self) -> String {
        self.text
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_has_a_head_and_a_line_for_each_of_its_values() {
        let mut metrics = Metrics::new("suimon_x");
        metrics.add(("open", "gauge", "Open ones."), [([], 2.0)]);
        let path = |name: &str| [("client", "c".to_owned()), ("path", name.to_owned())];
        metrics.add(("rtt_seconds", "gauge", "A time."), [(path("a"), 0.25), (path("b\"\\\n"), 1.0)]);
        let expected = "# HELP suimon_x_open Open ones.\n# TYPE suimon_x_open gauge\nsuimon_x_open 2\n\
            # HELP suimon_x_rtt_seconds A time.\n# TYPE suimon_x_rtt_seconds gauge\n\
            suimon_x_rtt_seconds{client=\"c\",path=\"a\"} 0.25\n\
            suimon_x_rtt_seconds{client=\"c\",path=\"b\\\"\\\\\\n\"} 1\n";
        assert_eq!(metrics.finish(), expected);
    }
}
