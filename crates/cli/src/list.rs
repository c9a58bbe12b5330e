//! `suimon list`: every algorithm with its parameters.

use std::io::{self, Write};

use clap::Args;
use comfy_table::{ContentArrangement, Table, TableStyle};
use serde::Serialize;
use suimon_algorithms::registry::{Description, Role, descriptions};
use suimon_scenario::StackProfile;

use crate::error::CliError;

const EXAMPLE: &str = "\
Examples:
  suimon list
  suimon list fs-at

Parameters are set behind the name: fs-at:mode=fit, vegas:alpha=2:beta=4. A wrapper goes before a +: fs-at+cubic.";

/// List every algorithm with its parameters, units and defaults
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Arguments {
    /// Only this algorithm
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    role: String,
    summary: &'static str,
    source: &'static str,
    colour: &'static str,
    parameters: Vec<Setting>,
}

#[derive(Serialize)]
struct Setting {
    name: &'static str,
    default: String,
    accepted: String,
    help: &'static str,
}

impl Entry {
    fn new(role: Role, description: &Description) -> Self {
        let parameters = description.parameters.iter().map(|parameter| Setting {
            name: parameter.name,
            default: parameter.default.to_string(),
            accepted: parameter.accepted(),
            help: parameter.help,
        });
        Self {
            name: description.name,
            role: role.to_string(),
            summary: description.summary,
            source: description.source,
            colour: description.colour,
            parameters: parameters.collect(),
        }
    }
}

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    let all = Role::ALL.iter().flat_map(|role| descriptions(*role).into_iter().map(|d| Entry::new(*role, d)));
    let (entries, others): (Vec<_>, Vec<_>) =
        all.partition(|entry| arguments.name.as_ref().is_none_or(|name| *name == entry.name));
    if entries.is_empty() {
        let accepted: Vec<_> = others.iter().map(|entry| entry.name).collect();
        let name = arguments.name.as_deref().unwrap_or_default();
        return Err(CliError::Option {
            option: "NAME",
            problem: format!("unknown algorithm \"{name}\"; accepted: {}", accepted.join(", ")),
        });
    }
    let mut out = io::stdout().lock();
    if arguments.json {
        let text = serde_json::to_string_pretty(&entries).map_err(io::Error::from)?;
        writeln!(out, "{text}")?;
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(TableStyle::new());
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(100);
    let mut role = "";
    for entry in &entries {
        if entry.role != role {
            role = &entry.role;
            table.add_row([capitalised(role)]);
        }
        table.add_row([format!("  {}", entry.name), String::new(), entry.summary.to_owned()]);
        for setting in &entry.parameters {
            let help = format!("{} [{}]", setting.help, setting.accepted);
            table.add_row([format!("    {}", setting.name), setting.default.clone(), help]);
        }
    }
    writeln!(out, "{}", table.trim_fmt())?;
    if arguments.name.is_none() {
        writeln!(out, "\nStack profiles: {}", StackProfile::NAMES.join(", "))?;
    }
    Ok(())
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
