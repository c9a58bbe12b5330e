//! The terminal that a process runs on, and one for a program that runs inside of it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::num::NonZeroU16;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::sys::signal::{SigHandler, Signal, signal};

use crate::error::{Doing, LinuxError};

/// Takes the terminal back from a program that has ended and had it for itself, as interactive shells do; nothing
/// where there is none.
pub fn take_back() {
    let input = io::stdin();
    // SAFETY: ignoring a signal runs no code of ours.
    let before = unsafe { signal(Signal::SIGTTOU, SigHandler::SigIgn) };
    let _ = nix::unistd::tcsetpgrp(&input, nix::unistd::getpgrp());
    if let Ok(before) = before {
        // SAFETY: the earlier handler is put back.
        let _ = unsafe { signal(Signal::SIGTTOU, before) };
    }
}

/// A terminal in memory: a program's output is read here, and bytes written here are its keys.
#[derive(Debug)]
pub struct PseudoTerminal(File);

impl PseudoTerminal {
    /// A terminal of 80 columns and 24 rows, and the end of it that a program runs on.
    ///
    /// # Errors
    /// Where the kernel has no more of them.
    pub fn open() -> Result<(Self, OwnedFd), LinuxError> {
        let ends = nix::pty::openpty(&size(DEFAULT_SIZE), None).doing("making a terminal")?;
        for end in [&ends.master, &ends.slave] {
            fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).doing("making a terminal")?;
        }
        Ok((Self(File::from(ends.master)), ends.slave))
    }

    /// Tells the program that its terminal has so many rows and columns now.
    pub fn resize(&self, rows: NonZeroU16, columns: NonZeroU16) {
        let size = size((rows.get(), columns.get()));
        // SAFETY: the descriptor is a terminal's, and the pointer is to a live struct that the call only reads. Where
        // it is refused the program goes on with the size that it has.
        unsafe { libc::ioctl(self.0.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
    }
}

/// Rows and columns.
const DEFAULT_SIZE: (u16, u16) = (24, 80);

fn size((rows, columns): (u16, u16)) -> nix::pty::Winsize {
    nix::pty::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

impl Read for PseudoTerminal {
    /// Zero bytes once no program has it any more.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer) {
            Err(error) if error.raw_os_error() == Some(libc::EIO) => Ok(0),
            read => read,
        }
    }
}

impl Write for PseudoTerminal {
    /// Gives the program as many keys as its terminal has room for; `WouldBlock` where it has none, as the program does not
    /// read.
    fn write(&mut self, keys: &[u8]) -> io::Result<usize> {
        // Reading waits, so the descriptor does not wait for the time of a write only.
        let flags = OFlag::from_bits_retain(fcntl(&self.0, FcntlArg::F_GETFL)?);
        fcntl(&self.0, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
        let written = self.0.write(keys);
        fcntl(&self.0, FcntlArg::F_SETFL(flags))?;
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl AsFd for PseudoTerminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Namespace;
    use crate::confined::{Confined, Outcome, Program};

    #[test]
    fn a_program_runs_on_a_terminal_of_its_own_and_its_keys_come_from_there() {
        let (mut terminal, end) = PseudoTerminal::open().unwrap();
        terminal.resize(NonZeroU16::new(30).unwrap(), NonZeroU16::new(100).unwrap());
        // The program opens it by name, and until then somebody has to have it.
        let held = end.try_clone().unwrap();
        let script = "exec <>/dev/tty >&0; stty size; read line; echo got $line";
        let started = Confined::start(&Program {
            words: ["sh", "-c", script].map(Into::into).into(),
            environment: Vec::new(),
            namespace: Namespace::current().unwrap(),
            covered: Vec::new(),
            keeps_rights: false,
            terminal: Some(end),
            in_front: true,
        });
        let mut program = match started {
            Ok(program) => program,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        terminal.write_all(b"keys\n").unwrap();
        assert_eq!(program.wait(None).unwrap(), Some(Outcome::Exited(0)));
        drop(held);
        let mut said = Vec::new();
        terminal.read_to_end(&mut said).unwrap();
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains("30 100\r\n") && said.contains("got keys\r\n"), "{said:?}");
    }
}
