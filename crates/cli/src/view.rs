//! Links shown while they run.

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args;
use suimon_emulator::LinkStatistics;
use suimon_linux::terminal::PseudoTerminal;
use suimon_view::{Board, Server, Terminal};

use crate::error::CliError;
use crate::output::tell;

/// Options of commands that emulate links.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "While it runs")]
pub(crate) struct ViewOptions {
    /// Show the links in the terminal while they run: rate, queue, marks, drops, who shares them
    #[arg(long, conflicts_with = "lab")]
    view: bool,
    /// Show the links in a browser, with history, at this address, such as 127.0.0.1:8080
    #[arg(long, value_name = "ADDRESS", conflicts_with = "lab")]
    web: Option<SocketAddr>,
}

/// Whoever shows links; none where nobody asked.
#[derive(Debug)]
pub(crate) struct View {
    board: Arc<Board>,
    terminal: Option<Terminal>,
    _server: Option<Server>,
}

impl ViewOptions {
    /// Whether anything is to be shown.
    pub(crate) fn is_wanted(&self) -> bool {
        self.view || self.web.is_some()
    }

    /// Whether the links are to be shown in the terminal, which has to be one.
    pub(crate) fn takes_terminal(&self) -> Result<bool, CliError> {
        if self.view && !io::stdout().is_terminal() {
            let problem = "standard output is no terminal; accepted: --web ADDRESS".to_owned();
            return Err(CliError::Option { option: "--view", problem });
        }
        Ok(self.view)
    }

    /// Shows what is posted under this heading, until it is dropped. In the terminal it leaves room for `program`, the
    /// terminal of a program that runs meanwhile.
    pub(crate) fn show(&self, title: &str, program: Option<PseudoTerminal>) -> Result<View, CliError> {
        let takes_terminal = self.takes_terminal()?;
        let board = Arc::new(Board::new(title));
        let server = self.web.map(|address| {
            let server = Server::start(Arc::clone(&board), address).map_err(|error| CliError::Option {
                option: "--web",
                problem: format!("{address}: {error}; accepted: a free address of this machine"),
            })?;
            tell(format_args!("http://{}/ shows the links", server.address()));
            Ok::<_, CliError>(server)
        });
        let server = server.transpose()?;
        let shown = Arc::clone(&board);
        let terminal = match program {
            _ if !takes_terminal => None,
            Some(program) => Some(Terminal::start_above(shown, program)?),
            // Namespaces, devices and sockets go with the process.
            None => Some(Terminal::start(shown, || std::process::exit(INTERRUPTED))?),
        };
        Ok(View { board, terminal, _server: server })
    }
}

/// As shells tell of a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

impl View {
    /// What the links of `group` do now.
    pub(crate) fn post(&self, group: &str, links: &[LinkStatistics]) {
        self.board.post(group, links);
    }

    /// Whether the terminal is taken.
    pub(crate) fn has_terminal(&self) -> bool {
        self.terminal.is_some()
    }
}
