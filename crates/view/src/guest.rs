//! A program on a terminal of its own, below the links that it is behind.

use std::io::{ErrorKind, Read, Write};
use std::num::NonZeroU16;
use std::os::fd::{AsFd, BorrowedFd};

use ratatui::Frame;
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use suimon_linux::terminal::PseudoTerminal;
use vt100::Parser;
use vt100::capture::BasicFormattedCaptureRange;

/// The program's terminal, and the text on it.
pub(crate) struct Guest {
    terminal: PseudoTerminal,
    screen: Parser,
    /// Nobody writes to it any more.
    is_over: bool,
    /// Typed keys that the program has not taken yet.
    keys: Vec<u8>,
}

/// Keys that wait for the program; beyond these none are taken from the user's terminal, which waits with them.
const MAX_KEYS: usize = 64 * 1_024;

/// Lines that are kept beyond those that are seen.
const KEPT_LINES: usize = 10_000;

impl Guest {
    pub(crate) fn new(terminal: PseudoTerminal) -> Self {
        let screen = Parser::new(Parser::DEFAULT_ROWS, Parser::DEFAULT_COLS, KEPT_LINES);
        Self { terminal, screen, is_over: false, keys: Vec::new() }
    }

    /// Readable where the program has written something; none once it cannot any more.
    pub(crate) fn source(&self) -> Option<BorrowedFd<'_>> {
        (!self.is_over).then(|| self.terminal.as_fd())
    }

    /// Takes in some of the program's output; without any, waits for it.
    pub(crate) fn read(&mut self) {
        let mut buffer = [0; 4_096];
        match self.terminal.read(&mut buffer) {
            Ok(length) if length > 0 => self.screen.process(&buffer[..length]),
            _ => self.is_over = true,
        }
    }

    /// Writable where the program takes keys that wait; none where none wait.
    pub(crate) fn sink(&self) -> Option<BorrowedFd<'_>> {
        (!self.is_over && !self.keys.is_empty()).then(|| self.terminal.as_fd())
    }

    /// Whether there is room for more keys.
    pub(crate) fn takes_keys(&self) -> bool {
        self.keys.len() < MAX_KEYS
    }

    /// Gives the program the typed keys, or keeps them where it does not read.
    pub(crate) fn press(&mut self, keys: &[u8]) {
        self.keys.extend_from_slice(keys);
        self.pass_keys();
    }

    /// Gives the program as many of the waiting keys as it takes.
    pub(crate) fn pass_keys(&mut self) {
        match self.terminal.write(&self.keys) {
            Ok(taken) => drop(self.keys.drain(..taken)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            // A program that has ended takes no keys.
            Err(_) => self.keys.clear(),
        }
    }

    /// Shows the program's terminal, which becomes as large as `area`.
    pub(crate) fn draw(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let area = area.intersection(frame.area());
        let (Some(rows), Some(columns)) = (NonZeroU16::new(area.height), NonZeroU16::new(area.width)) else {
            return;
        };
        if self.screen.screen().size() != (rows, columns) {
            self.screen.set_size(rows, columns);
            self.terminal.resize(rows, columns);
        }
        let screen = self.screen.screen();
        for row in 0..area.height {
            for column in 0..area.width {
                let shown = &mut frame.buffer_mut()[(area.x + column, area.y + row)];
                if let Some(cell) = screen.cell(row, column) {
                    paint(shown, cell);
                }
            }
        }
        if !screen.hide_cursor() {
            let (row, column) = screen.cursor_position();
            // Behind the last column where the next letter begins a line.
            let column = column.min(area.width - 1);
            frame.set_cursor_position(Position::new(area.x + column, area.y + row));
        }
    }

    /// The text on the terminal and the text that scrolled away, with colours.
    pub(crate) fn contents(&self) -> String {
        let mut text = String::new();
        let all = BasicFormattedCaptureRange::Full(&mut Default::default());
        // A string takes all.
        let _ = self.screen.screen().write_contents_formatted_basic(&mut text, all);
        text.truncate(text.trim_end().len());
        text
    }
}

fn paint(shown: &mut Cell, cell: &vt100::Cell) {
    let modifiers = [
        (cell.bold(), Modifier::BOLD),
        (cell.dim(), Modifier::DIM),
        (cell.italic(), Modifier::ITALIC),
        (cell.underline(), Modifier::UNDERLINED),
        (cell.inverse(), Modifier::REVERSED),
    ];
    let modifiers = modifiers.into_iter().filter(|(is_set, _)| *is_set).map(|(_, modifier)| modifier);
    let style = Style::new().fg(colour(cell.fgcolor())).bg(colour(cell.bgcolor()));
    shown.set_style(style.add_modifier(modifiers.collect()));
    shown.set_symbol(if cell.has_contents() { cell.contents() } else { " " });
}

fn colour(colour: vt100::Color) -> Color {
    match colour {
        vt100::Color::Default => Color::Reset,
        vt100::Color::Idx(index) => Color::Indexed(index),
        vt100::Color::Rgb(red, green, blue) => Color::Rgb(red, green, blue),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    #[test]
    fn what_a_program_writes_stands_in_its_place_and_is_there_at_the_end() {
        let (terminal, program) = PseudoTerminal::open().unwrap();
        let mut guest = Guest::new(terminal);
        let mut screen = Terminal::new(TestBackend::new(20, 6)).unwrap();
        screen.draw(|frame| guest.draw(frame, Rect::new(0, 3, 20, 3))).unwrap();
        let mut program = std::fs::File::from(program);
        for line in 1..=9 {
            writeln!(program, "line \x1b[31m{line}\x1b[m").unwrap();
        }
        drop(program);
        while guest.source().is_some() {
            guest.read();
        }
        screen.draw(|frame| guest.draw(frame, Rect::new(0, 3, 20, 3))).unwrap();
        let shown = screen.backend().to_string();
        assert!(shown.contains("line 8") && shown.contains("line 9"), "{shown}");
        assert!(!shown.contains("line 6"), "three rows are seen, the cursor's among them:\n{shown}");
        assert_eq!(screen.backend().buffer()[(5, 3)].fg, Color::Indexed(1), "\n{shown}");
        let plain: String = vt100::capture::basic_formatted_to_plain(&guest.contents()).collect();
        let expected: Vec<_> = (1..=9).map(|line| format!("line {line}")).collect();
        assert_eq!(plain.lines().map(str::trim_end).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn keys_for_a_program_that_does_not_read_wait_and_hold_up_nothing() {
        let (terminal, program) = PseudoTerminal::open().unwrap();
        let mut guest = Guest::new(terminal);
        // As programs have it that read keys as they come; else the kernel drops what is beyond a line.
        let terminal = program.try_clone().unwrap();
        let set = std::process::Command::new("stty").args(["raw", "-echo"]).stdin(terminal).status().unwrap();
        assert!(set.success());
        let pasted: Vec<u8> = (0..MAX_KEYS).map(|index| b'a' + (index % 26) as u8).collect();
        guest.press(&pasted);
        assert!(guest.sink().is_some(), "the kernel has room for a part");
        let mut program = std::fs::File::from(program);
        let (mut got, mut buffer) = (Vec::new(), [0; 4_096]);
        while got.len() < pasted.len() {
            let length = program.read(&mut buffer).unwrap();
            got.extend_from_slice(&buffer[..length]);
            guest.pass_keys();
        }
        assert!(got == pasted && guest.sink().is_none() && guest.takes_keys());
    }
}
