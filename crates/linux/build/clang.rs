//! The search for a compiler that can compile for the kernel.

use std::process::Command;

/// The reason that `clang` cannot compile for the kernel.
pub(crate) fn why_not(clang: &str) -> Option<String> {
    match Command::new(clang).arg("--print-targets").output() {
        Err(error) => Some(format!("{clang} was not there when suimon was built ({error})")),
        Ok(output) if !String::from_utf8_lossy(&output.stdout).contains("bpf") => {
            Some(format!("{clang}, with which suimon was built, does not compile for BPF"))
        }
        Ok(_) => None,
    }
}
