//! The board in the terminal.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Gauge, Paragraph, Row, Sparkline, Table, TableState};

use crate::board::{Board, Link, dropped};

/// Shows the board in this process's terminal until it is dropped, or the user presses q.
#[derive(Debug)]
pub struct Terminal {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The picture changes so often.
const FRAME: Duration = Duration::from_millis(200);

impl Terminal {
    /// Takes the terminal over. `on_quit` is called once the user has pressed q or Ctrl-C and the terminal is back as
    /// it was.
    ///
    /// # Errors
    /// Where standard output is no terminal.
    pub fn start(board: Arc<Board>, on_quit: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let mut terminal = ratatui::try_init()?;
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let thread = std::thread::Builder::new().name("view".to_owned()).spawn(move || {
            let mut selected = 0;
            let quit = loop {
                if told.load(Ordering::Relaxed) {
                    break false;
                }
                if terminal.draw(|frame| draw(frame, &board, &mut selected)).is_err() {
                    break false;
                }
                match key() {
                    Some(KeyCode::Char('q')) => break true,
                    Some(KeyCode::Down) => selected += 1,
                    Some(KeyCode::Up) => selected = selected.saturating_sub(1),
                    _ => {}
                }
            };
            ratatui::restore();
            if quit {
                on_quit();
            }
        })?;
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

/// What was pressed, if anything within the time of a frame; Ctrl-C is as q.
fn key() -> Option<KeyCode> {
    if !event::poll(FRAME).ok()? {
        return None;
    }
    let Event::Key(key) = event::read().ok()? else { return None };
    let interrupts = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    Some(if interrupts { KeyCode::Char('q') } else { key.code })
}

/// Samples that a chart shows.
const SHOWN_SAMPLES: usize = 240;

fn draw(frame: &mut Frame<'_>, board: &Board, selected: &mut usize) {
    let links = board.links(SHOWN_SAMPLES);
    *selected = (*selected).min(links.len().saturating_sub(1));
    let height = (links.len() as u16 + 3).min(frame.area().height / 2);
    let [title, list, details] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(height), Constraint::Min(0)])
            .areas(frame.area());
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Line::styled(format!("{}   q quits, arrows select", board.title()), bold), title);
    draw_list(frame, list, &links, *selected);
    if let Some(link) = links.get(*selected) {
        draw_link(frame, details, link);
    }
}

fn draw_list(frame: &mut Frame<'_>, area: Rect, links: &[Link], selected: usize) {
    let header = ["link", "rate", "queue", "sojourn", "marked", "dropped", "flows", "late, 99 %"];
    let row = |link: &Link| {
        let direction = &link.now.directions[0];
        Row::new([
            link.name.clone(),
            direction.throughput.to_string(),
            direction.backlog.bytes.to_string(),
            direction.sojourn.map_or("-".to_owned(), |sojourn| format!("{sojourn:.1}")),
            direction.totals.marked.to_string(),
            dropped(direction).to_string(),
            direction.flow_count.to_string(),
            format!("{:.1}", link.now.lateness.p99),
        ])
    };
    let narrow = Constraint::Length(12);
    let widths = [Constraint::Min(20), narrow, narrow, narrow, narrow, narrow, narrow, narrow];
    let table = Table::new(links.iter().map(row), widths)
        .header(Row::new(header.map(Cell::from)).style(Style::new().add_modifier(Modifier::UNDERLINED)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::default().with_selected(Some(selected));
    frame.render_stateful_widget(table, area, &mut state);
}

fn draw_link(frame: &mut Frame<'_>, area: Rect, link: &Link) {
    let third = Constraint::Percentage(28);
    let [rate, queue, sojourn, flows] =
        Layout::vertical([third, third, third, Constraint::Min(3)]).areas(area);
    let chart = |frame: &mut Frame<'_>, area: Rect, title: &str, unit: &str, values: Vec<f64>| {
        let most = values.iter().copied().fold(0.0, f64::max);
        let last = values.last().copied().unwrap_or(0.0);
        let width = usize::from(area.width.saturating_sub(2));
        // Whole numbers are what a bar can show.
        let data: Vec<u64> =
            values[values.len().saturating_sub(width)..].iter().map(|value| (value * 1e3) as u64).collect();
        let block = Block::bordered().title(format!("{title}: {last:.2} {unit}, at most {most:.2} {unit}"));
        frame.render_widget(Sparkline::default().block(block).data(&data), area);
    };
    let points = || link.samples.iter().map(|sample| sample.directions[0]);
    chart(frame, rate, "rate", "Mbit/s", points().map(|point| point.throughput_bps / 1e6).collect());
    chart(frame, queue, "queue", "kB", points().map(|point| point.backlog_bytes / 1e3).collect());
    let known = |value: f64| if value.is_nan() { 0.0 } else { value };
    chart(frame, sojourn, "sojourn", "ms", points().map(|point| known(point.sojourn_ms)).collect());
    draw_flows(frame, flows, link);
}

fn draw_flows(frame: &mut Frame<'_>, area: Rect, link: &Link) {
    let direction = &link.now.directions[0];
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
    use crate::board::tests::link;

    #[test]
    fn links_and_the_charts_of_the_selected_one_are_drawn_whatever_the_size() {
        let board = Board::new("two links");
        board.post("", &[link("first", 100, 1, 2), link("second", 100, 3, 4)]);
        for (width, height) in [(120, 40), (40, 10), (10, 3), (1, 1)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            let mut selected = 7;
            terminal.draw(|frame| draw(frame, &board, &mut selected)).unwrap();
            assert_eq!(selected, 1);
            if width == 120 {
                let shown = terminal.backend().to_string();
                for expected in ["two links", "first", "second", "rate: 1.00 Mbit/s", "shares"] {
                    assert!(shown.contains(expected), "{expected} in\n{shown}");
                }
            }
        }
    }
}
