//! The board in the terminal.

use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Gauge, Paragraph, Row, Sparkline, Table, TableState};
use ratatui::{DefaultTerminal, Frame};
use suimon_linux::schedule::{Wanted, wait_ready};
use suimon_linux::terminal::PseudoTerminal;
use suimon_units::Duration;

use crate::board::{Board, Link, Shown};
use crate::guest::Guest;

/// Shows the board in this process's terminal until it is dropped, or the user presses q.
#[derive(Debug)]
pub struct Terminal {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The picture changes so often.
const FRAME: Duration = Duration::from_millis(200);
/// And so often at most where a program writes.
const QUICK_FRAME: Duration = Duration::from_millis(40);

/// Ctrl-], which programs have no use for, shows the next link.
const NEXT: u8 = 0x1d;

impl Terminal {
    /// Takes the terminal over. `on_quit` is called once the user has pressed q or Ctrl-C and the terminal is back as
    /// it was.
    ///
    /// # Errors
    /// Where standard output is no terminal.
    pub fn start(board: Arc<Board>, on_quit: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        Self::with(move |terminal, over| {
            let quit = watch(terminal, &board, over);
            ratatui::restore();
            if quit {
                on_quit();
            }
        })
    }

    /// Takes the terminal over, and shares it with a program: the links above, below the output of `program`, which
    /// gets the typed keys. Once this is dropped, all output of the program stands on standard output.
    ///
    /// # Errors
    /// Where standard output is no terminal.
    pub fn start_above(board: Arc<Board>, program: PseudoTerminal) -> io::Result<Self> {
        Self::with(move |terminal, over| {
            let mut guest = Guest::new(program);
            // A terminal that is gone shows nothing any more.
            let _ = watch_above(terminal, &board, over, &mut guest);
            ratatui::restore();
            let contents = guest.contents();
            if !contents.is_empty() {
                let _ = writeln!(io::stdout(), "{contents}\x1b[m");
            }
        })
    }

    fn with(watch: impl FnOnce(&mut DefaultTerminal, &AtomicBool) + Send + 'static) -> io::Result<Self> {
        let mut terminal = ratatui::try_init()?;
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let watch = move || watch(&mut terminal, &told);
        let thread = std::thread::Builder::new().name("view".to_owned()).spawn(watch)?;
        Ok(Self { over, thread: Some(thread) })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Until the user quits, which gives true, or it is over.
fn watch(terminal: &mut DefaultTerminal, board: &Board, over: &AtomicBool) -> bool {
    let mut selected = None;
    loop {
        if over.load(Ordering::Relaxed)
            || terminal.draw(|frame| draw(frame, board, &mut selected, None)).is_err()
        {
            return false;
        }
        match key() {
            Some(KeyCode::Char('q')) => return true,
            Some(KeyCode::Down) => selected = Some(selected.map_or(0, |selected| selected + 1)),
            Some(KeyCode::Up) => selected = Some(selected.unwrap_or(0).saturating_sub(1)),
            _ => {}
        }
    }
}

/// The key pressed within the time of a frame, if any; Ctrl-C is as q.
fn key() -> Option<KeyCode> {
    if !event::poll(std::time::Duration::from_nanos(FRAME.as_nanos())).ok()? {
        return None;
    }
    let Event::Key(key) = event::read().ok()? else { return None };
    let interrupts = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    Some(if interrupts { KeyCode::Char('q') } else { key.code })
}

/// Until it is over. Keys are not looked at, as the program wants them as they come.
fn watch_above(
    terminal: &mut DefaultTerminal,
    board: &Board,
    over: &AtomicBool,
    guest: &mut Guest,
) -> io::Result<()> {
    let mut selected = None;
    let (mut drawn, mut wrote) = (None::<Instant>, false);
    let input = io::stdin();
    // Input that is no terminal is the program's own.
    let mut has_keys = input.is_terminal();
    loop {
        let is_over = over.load(Ordering::Relaxed);
        let since =
            drawn.map_or(Duration::MAX, |drawn| Duration::from_nanos(drawn.elapsed().as_nanos() as u64));
        let frame = if wrote { QUICK_FRAME } else { FRAME };
        if since >= frame && !is_over {
            terminal.draw(|frame| draw(frame, board, &mut selected, Some(guest)))?;
            (drawn, wrote) = (Some(Instant::now()), false);
            continue;
        }
        // Output written by then is still taken in.
        let patience = if is_over { Duration::ZERO } else { frame.saturating_sub(since) };
        let keys = (has_keys && guest.takes_keys()).then(|| (input.as_fd(), Wanted::Read));
        let output = guest.source().map(|source| (source, Wanted::Read));
        let room = guest.sink().map(|sink| (sink, Wanted::Write));
        let [typed, written, takes] = wait_ready([keys, output, room], patience).map_err(io::Error::other)?;
        if takes {
            guest.pass_keys();
        }
        if written {
            guest.read();
            wrote = true;
        } else if is_over {
            return Ok(());
        }
        if typed {
            let mut keys = [0; 1_024];
            let length = input.lock().read(&mut keys)?;
            has_keys = length > 0;
            let mut parts = keys[..length].split(|key| *key == NEXT);
            guest.press(parts.next().unwrap_or_default());
            for keys in parts {
                selected = Some(selected.map_or(0, |selected| selected + 1));
                guest.press(keys);
            }
        }
    }
}

/// Samples that a chart shows.
const SHOWN_SAMPLES: usize = 240;

/// The links, all over the terminal, or in its upper part with a program below.
fn draw(frame: &mut Frame<'_>, board: &Board, selected: &mut Option<usize>, guest: Option<&mut Guest>) {
    let links = board.links(SHOWN_SAMPLES);
    let shown: Vec<_> = links.iter().flat_map(Link::shown).collect();
    // The next behind the last is the first.
    *selected = selected.map(|selected| selected.checked_rem(shown.len()).unwrap_or(0));
    let busiest = shown.iter().enumerate().max_by_key(|(_, shown)| shown.statistics().totals.bytes);
    let place = selected.or(busiest.map(|(place, _)| place)).unwrap_or(0);
    let (keys, upper) = match guest {
        None => ("q quits, arrows select", frame.area()),
        Some(guest) => {
            let [upper, lower] = Layout::vertical([Constraint::Fill(1); 2]).areas(frame.area());
            guest.draw(frame, lower);
            ("Ctrl-] selects, all else goes to the program below", upper)
        }
    };
    let height = (shown.len() as u16 + 1).min(upper.height / 2);
    let [title, list, details] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(height), Constraint::Min(0)])
            .areas(upper);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Line::styled(format!("{}   {keys}", board.title()), bold), title);
    draw_list(frame, list, &shown, place);
    if let Some(shown) = shown.get(place) {
        draw_link(frame, details, shown);
    }
}

fn draw_list(frame: &mut Frame<'_>, area: Rect, shown: &[Shown<'_>], selected: usize) {
    let header = ["link", "rate", "queue", "sojourn", "marked", "dropped", "flows", "late, 99 %"];
    let row = |shown: &Shown<'_>| {
        let direction = shown.statistics();
        Row::new([
            shown.name(),
            direction.throughput.to_string(),
            direction.backlog.bytes.to_string(),
            direction.sojourn.map_or("-".to_owned(), |sojourn| format!("{sojourn:.1}")),
            direction.totals.marked.to_string(),
            direction.lost().to_string(),
            direction.flow_count.to_string(),
            format!("{:.1}", shown.link.now.lateness.p99),
        ])
    };
    let narrow = Constraint::Length(12);
    let widths = [Constraint::Min(20), narrow, narrow, narrow, narrow, narrow, narrow, narrow];
    let table = Table::new(shown.iter().map(row), widths)
        .header(Row::new(header.map(Cell::from)).style(Style::new().add_modifier(Modifier::UNDERLINED)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::default().with_selected(Some(selected));
    frame.render_stateful_widget(table, area, &mut state);
}

/// A chart lower than this shows nothing.
const MIN_CHART: u16 = 5;

fn draw_link(frame: &mut Frame<'_>, area: Rect, shown: &Shown<'_>) {
    // One above the other, or where that leaves too little height, side by side.
    let parts = [Constraint::Fill(1); 4];
    let [rate, queue, sojourn, flows] = if area.height >= 4 * MIN_CHART {
        Layout::vertical(parts).areas(area)
    } else {
        Layout::horizontal(parts).areas(area)
    };
    let chart = |frame: &mut Frame<'_>, area: Rect, title: &str, unit: &str, values: Vec<f64>| {
        let most = values.iter().copied().fold(0.0, f64::max);
        let last = values.last().copied().unwrap_or(0.0);
        let width = usize::from(area.width.saturating_sub(2));
        // A bar can show whole numbers only.
        let data: Vec<u64> =
            values[values.len().saturating_sub(width)..].iter().map(|value| (value * 1e3) as u64).collect();
        let block = Block::bordered().title(format!("{title}: {last:.2} {unit}, at most {most:.2} {unit}"));
        frame.render_widget(Sparkline::default().block(block).data(&data), area);
    };
    let points = || shown.link.samples.iter().map(|sample| sample.directions[shown.way]);
    chart(frame, rate, "rate", "Mbit/s", points().map(|point| point.throughput_bps / 1e6).collect());
    chart(frame, queue, "queue", "kB", points().map(|point| point.backlog_bytes / 1e3).collect());
    let known = |value: f64| if value.is_nan() { 0.0 } else { value };
    chart(frame, sojourn, "sojourn", "ms", points().map(|point| known(point.sojourn_ms)).collect());
    draw_flows(frame, flows, shown);
}

fn draw_flows(frame: &mut Frame<'_>, area: Rect, shown: &Shown<'_>) {
    let direction = shown.statistics();
    let all = direction.totals.bytes.as_f64().max(1.0);
    let rows = usize::from(area.height.saturating_sub(1)).min(direction.flows.len());
    let areas = Layout::vertical(vec![Constraint::Length(1); rows + 1]).split(area);
    frame.render_widget(Paragraph::new("shares since the start"), areas[0]);
    for (flow, area) in direction.flows.iter().zip(&areas[1..]) {
        let share = (flow.bytes.as_f64() / all).clamp(0.0, 1.0);
        let label =
            format!("{}  {:.1} %  {} marked  {} dropped", flow.key, 100.0 * share, flow.marked, flow.dropped);
        frame.render_widget(Gauge::default().ratio(share).label(label), *area);
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::board::tests::{link, one_way};

    #[test]
    fn links_and_the_charts_of_the_selected_one_are_drawn_whatever_the_size() {
        let board = Board::new("two links");
        board.post("", &[link("first", 100, 1, 2), link("second", 100, 3, 4)]);
        for (width, height) in [(120, 40), (40, 10), (10, 3), (1, 1)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            let mut selected = Some(7);
            terminal.draw(|frame| draw(frame, &board, &mut selected, None)).unwrap();
            assert_eq!(selected, Some(3), "of four directions");
            if width == 120 {
                let shown = terminal.backend().to_string();
                for expected in ["two links", "first", "second", "rate: 1.00 Mbit/s", "shares"] {
                    assert!(shown.contains(expected), "{expected} in\n{shown}");
                }
            }
        }
    }

    #[test]
    fn a_program_has_the_lower_half_and_the_links_the_upper() {
        use std::io::Write;

        let board = Board::new("curl over 1Mbit");
        board.post("", &[link("up", 100, 1, 2)]);
        let (terminal, program) = PseudoTerminal::open().unwrap();
        let mut guest = Guest::new(terminal);
        writeln!(std::fs::File::from(program), "said by the program").unwrap();
        while guest.source().is_some() {
            guest.read();
        }
        for (width, height) in [(120, 40), (80, 24), (10, 3), (1, 1)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw(frame, &board, &mut None, Some(&mut guest))).unwrap();
            let shown = terminal.backend().to_string();
            if width >= 80 {
                let line = |text: &str| shown.lines().position(|line| line.contains(text));
                let (rate, said) = (line("rate: 1.00"), line("said by the program"));
                assert!(rate.is_some() && rate < said, "{shown}");
                assert_eq!(said, Some(usize::from(height) / 2), "{shown}");
            }
        }
    }

    #[test]
    fn a_way_on_which_nothing_ever_waits_has_no_row() {
        let board = Board::new("");
        board.post("", &[one_way("bottleneck", 100)]);
        let mut terminal = Terminal::new(TestBackend::new(120, 20)).unwrap();
        terminal.draw(|frame| draw(frame, &board, &mut None, None)).unwrap();
        assert!(!terminal.backend().to_string().contains("bottleneck-reverse"));
    }
}
