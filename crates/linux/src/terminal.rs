//! The terminal that a process runs on.

use std::io;

use nix::sys::signal::{SigHandler, Signal, signal};

/// Takes the terminal back from a program that has ended and had it for itself, as interactive shells do; nothing
/// where there is none.
pub fn take_back() {
    let input = io::stdin();
    // SAFETY: ignoring a signal runs no code of ours.
    let before = unsafe { signal(Signal::SIGTTOU, SigHandler::SigIgn) };
    let _ = nix::unistd::tcsetpgrp(&input, nix::unistd::getpgrp());
    if let Ok(before) = before {
        // SAFETY: what was there before is put back.
        let _ = unsafe { signal(Signal::SIGTTOU, before) };
    }
}
