//! `suimon files`: what an installation has beside the command itself.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;

use crate::error::CliError;

const EXAMPLE: &str = "\
Example:
  suimon files --man ~/.local/share/man/man1 --bash ~/.local/share/bash-completion/completions

`make install` puts all of them where a system looks for them.";

/// Write man pages, completions for shells, or programs for the kernel into folders
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE, arg_required_else_help = true)]
pub(crate) struct Arguments {
    /// A man page for each command
    #[arg(long, value_name = "DIR")]
    man: Option<PathBuf>,
    /// What completes commands and options in bash
    #[arg(long, value_name = "DIR")]
    bash: Option<PathBuf>,
    /// The same for fish
    #[arg(long, value_name = "DIR")]
    fish: Option<PathBuf>,
    /// The same for zsh
    #[arg(long, value_name = "DIR")]
    zsh: Option<PathBuf>,
    /// The congestion controls that `suimon cc` loads, as object files
    #[cfg(feature = "bpf")]
    #[arg(long, value_name = "DIR")]
    bpf: Option<PathBuf>,
}

pub(crate) fn execute(arguments: &Arguments, mut command: Command) -> Result<(), CliError> {
    if let Some(folder) = &arguments.man {
        create(folder)?;
        clap_mangen::generate_to(command.clone(), folder).map_err(cannot_write(folder))?;
    }
    // Each under the name by which its shell finds it.
    for (folder, shell, name) in [
        (&arguments.bash, Shell::Bash, "suimon"),
        (&arguments.fish, Shell::Fish, "suimon.fish"),
        (&arguments.zsh, Shell::Zsh, "_suimon"),
    ] {
        let Some(folder) = folder else { continue };
        create(folder)?;
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command, "suimon", &mut text);
        let path = folder.join(name);
        fs::write(&path, text).map_err(cannot_write(&path))?;
    }
    #[cfg(feature = "bpf")]
    if let Some(folder) = &arguments.bpf {
        create(folder)?;
        for algorithm in suimon_linux::congestion::ALGORITHMS {
            let path = folder.join(algorithm.kernel_name).with_extension("bpf.o");
            fs::write(&path, algorithm.object()?).map_err(cannot_write(&path))?;
        }
    }
    Ok(())
}

fn create(folder: &Path) -> Result<(), CliError> {
    Ok(fs::create_dir_all(folder).map_err(cannot_write(folder))?)
}

/// Names the file in what the system says of it.
fn cannot_write(path: &Path) -> impl FnOnce(std::io::Error) -> std::io::Error {
    move |error| std::io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
