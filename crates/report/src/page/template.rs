//! The page's frame: our markup, style and script, and the charting library.

const FRAME: &str = include_str!("../../web/page.html");
const STYLE: &str = include_str!("../../web/page.css");
/// One script to the browser, in parts to us; each uses those before it.
const SCRIPT: &str = concat!(
    include_str!("../../web/script/elements.js"),
    include_str!("../../web/script/tables.js"),
    include_str!("../../web/script/topology.js"),
    include_str!("../../web/script/delays.js"),
    include_str!("../../web/script/charts.js"),
    include_str!("../../web/script/time.js"),
    include_str!("../../web/script/figures.js"),
    include_str!("../../web/script/page.js"),
);
const LIBRARY: &str = include_str!(concat!(env!("OUT_DIR"), "/uplot.js"));
const LIBRARY_STYLE: &str = include_str!(concat!(env!("OUT_DIR"), "/uplot.css"));
const LIBRARY_LICENCE: &str = include_str!(concat!(env!("OUT_DIR"), "/uplot-licence.txt"));

/// The whole page. `data` is JSON in which `<` is escaped.
pub(super) fn fill(title: &str, data: &str) -> String {
    let title = escape(if title.is_empty() { "Suimon report" } else { title });
    let mut page =
        String::with_capacity(FRAME.len() + LIBRARY.len() + SCRIPT.len() + STYLE.len() + data.len());
    let mut rest = FRAME;
    // One pass over the frame, so that nothing inserted is ever searched for placeholders.
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").expect("every placeholder of the frame is closed");
        page.push_str(before);
        page.push_str(match name {
            "title" => &title,
            "data" => data,
            "style" => STYLE,
            "script" => SCRIPT,
            "library" => LIBRARY,
            "library-style" => LIBRARY_STYLE,
            "library-licence" => LIBRARY_LICENCE.trim_end(),
            other => unreachable!("the frame has no placeholder named {other}"),
        });
        rest = after;
    }
    page.push_str(rest);
    page
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
