//! `suimon shell`: a program behind an emulated link.

mod links;
mod names;
mod record;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use suimon_algorithms::Value;
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_emulator::{LinkReport, Setup, TwoHosts, Verdict, run_result};
use suimon_linux::confined::{self, Confined, Program};
use suimon_linux::terminal::{self, PseudoTerminal};
use suimon_linux::{LinuxError, Namespace, schedule};
use suimon_report::{JsonDetail, ReportHeader, json};
use suimon_scenario::{Link, LinkSpec};
use suimon_study::{Findings, VERSION, quoted};
use suimon_units::Duration;

use self::links::{alone, both};
use self::names::{Names, covered};
use self::record::{Files, Recorder, named};
use crate::error::CliError;
use crate::guests::LabOptions;
use crate::lab;
use crate::output::{command_line, tell};
use crate::view::ViewOptions;

const EXAMPLE: &str = "\
Examples:
  suimon shell --link \"3.6Mbit 90ms 96kB\" --queue rtt-aqm -- ping -c 3 far
  suimon shell --link \"lte-driving 60ms\" --internet -- curl -O https://example.com/
  suimon shell --down \"hsdpa PA3 10dB 90ms\" --up \"384kbit 90ms\"
  suimon shell --paths \"lte.down; 10Mbit 5ms\" -- bash
  suimon shell --link \"50Mbit 20ms\" --queue codel --view --server \"iperf3 -s\" -- iperf3 -c far

A link is RATE ROUND-TRIP-TIME [BUFFER] [loss=1%] [jitter=1ms] [reorder=1%/10ms]. In place of RATE:
trace=FILE, schedule=FILE, hsdpa PROFILE GEOMETRY, wifi STANDARD RATE.
The program sees a network of its own. The link leads from there to the host that suimon runs on, which the program \
calls \"far\"; its address is in SUIMON_FAR. Within a shell, a further one adds its link in front. The exit code is \
the program's.";

/// Run a program, or a shell, behind a link of your choice
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Arguments {
    /// The link, both ways alike [default round-trip time: 40ms]
    #[arg(long, value_name = "LINK", required_unless_present_any = ["down", "up", "paths"])]
    link: Option<String>,
    /// The way to the program; half of the round-trip time
    #[arg(long, value_name = "LINK", conflicts_with = "paths")]
    down: Option<String>,
    /// The way from the program; half of the round-trip time
    #[arg(long, value_name = "LINK", conflicts_with = "paths")]
    up: Option<String>,
    /// Several links, apart by semicolons: the program has a device for each
    #[arg(long, value_name = "LINKS", conflicts_with = "link")]
    paths: Option<String>,
    /// Queue discipline in front of each link, each way; programs use ECN where it marks
    #[arg(long, value_name = "NAME", default_value = "droptail")]
    queue: String,
    /// Queue discipline for the way from the program, where it differs
    #[arg(long, value_name = "NAME")]
    up_queue: Option<String>,
    /// Congestion control of what the program sends, as the kernel calls it
    #[arg(long, value_name = "NAME")]
    cc: Option<String>,
    /// A program to start at the far end before, as a shell reads it, as in "iperf3 -s"; killed at the end. The far
    /// end then is a network of its own
    #[arg(long, value_name = "COMMAND")]
    server: Option<String>,
    /// Let the program reach what this machine reaches, by TCP and UDP, and ask for names as this machine does
    #[arg(long, conflicts_with = "server")]
    internet: bool,
    /// Seed of all randomness
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Hand over wire packets only, rather than split what the kernel hands over
    #[arg(long)]
    no_segmentation: bool,
    /// Keep this machine's cores from halting meanwhile: where packets come apart by milliseconds, they are some 100 us
    /// less late on a virtual machine, which takes the power of a busy one
    #[arg(long)]
    awake: bool,
    /// Say nothing of the link at the end
    #[arg(long, short)]
    quiet: bool,
    /// Write the page and the tables of a simulation into this folder
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Write the result as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
    /// Write what crossed the links as a capture (pcapng)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pcap: Option<PathBuf>,
    /// Write what happened to each packet, and when (CSV)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    log: Option<PathBuf>,
    #[command(flatten)]
    view: ViewOptions,
    #[command(flatten)]
    lab: LabOptions,
    /// The program and its arguments [default: a shell]
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Where no round-trip time is given.
const RTT: Duration = Duration::from_millis(40);

pub(crate) fn execute(arguments: &Arguments) -> Result<ExitCode, CliError> {
    let paths = arguments.paths()?;
    arguments.check_command()?;
    if arguments.lab.lab.is_some() {
        return lab::instead(&arguments.lab, arguments.programs()?);
    }
    let takes_terminal = arguments.view.takes_terminal()?;
    let as_user = !confined::may_administer_network();
    if as_user {
        confined::enter_user_namespace()?;
    }
    // Without rights over the network that this runs in, the link cannot end there.
    let far_is_own = as_user || arguments.server.is_some() || arguments.internet;
    let near = Namespace::new()?;
    arguments.set_stack(&near)?;
    let files = arguments.files(&paths)?;
    let setup = Setup {
        seed: arguments.seed,
        segmentation: !arguments.no_segmentation,
        log: files.is_some(),
        awake: arguments.awake,
        ..Setup::default()
    };
    let mut signals = schedule::Signals::block()?;
    let names = arguments.internet.then(Names::read);
    let hosts = match &names {
        Some(names) => TwoHosts::outward(&setup, near, &paths, names.resolver())?,
        None if far_is_own => TwoHosts::between(&setup, near, Namespace::new()?, &paths)?,
        None => TwoHosts::between(&setup, near, Namespace::current()?, &paths)?,
    };
    if far_is_own {
        arguments.set_stack(&hosts.far)?;
    }
    // For shells in this one.
    hosts.forward()?;
    let recorder = match (files, hosts.emulation.records()) {
        (Some(files), Some(records)) => Some(Recorder::start(files, hosts.emulation.clock(), records)?),
        _ => None,
    };
    let (screen, terminal) = match takes_terminal {
        true => Some(PseudoTerminal::open()?).unzip(),
        false => (None, None),
    };
    let server = arguments.server.as_ref().map(|command| {
        let words = ["/bin/sh", "-c", command].map(OsString::from).into();
        Confined::start(&Program {
            words,
            environment: Vec::new(),
            namespace: hosts.far.clone(),
            covered: Vec::new(),
            keeps_rights: as_user,
            terminal: terminal.as_ref().map(OwnedFd::try_clone).transpose()?,
            in_front: false,
        })
        .map_err(CliError::from)
    });
    let server = server.transpose()?;
    let view =
        arguments.view.is_wanted().then(|| arguments.view.show(&arguments.title(), screen)).transpose()?;
    let program = Confined::start(&Program {
        words: arguments.words(),
        environment: environment(&hosts, &arguments.links_title()),
        namespace: hosts.near.clone(),
        covered: covered(&hosts, names.as_ref()),
        keeps_rights: as_user,
        terminal,
        in_front: true,
    });
    let mut program = match program {
        Ok(program) => program,
        Err(error) => {
            let Some(code) = error.exit_code() else { return Err(error.into()) };
            tell(error);
            return Ok(ExitCode::from(code));
        }
    };
    let outcome = loop {
        if let Some(outcome) = program.wait(Some(Duration::from_millis(100)))? {
            break outcome;
        }
        while let Some(signal) = signals.take()? {
            program.signal(signal);
        }
        if let Some(view) = &view {
            let links: Vec<_> = hosts.emulation.statistics().into_iter().flatten().collect();
            view.post("", &links);
        }
    };
    drop(view);
    terminal::take_back();
    drop(server);
    let reports = hosts.emulation.finish()?;
    let missed = recorder.map(Recorder::finish).transpose()?.unwrap_or_default();
    if missed > 0 {
        tell(format_args!("{missed} events found no room to be written down and are in no file"));
    }
    arguments.deliver(&reports)?;
    Ok(ExitCode::from(outcome.code()))
}

impl Arguments {
    /// Refuses a mistyped option, which would be taken for the program.
    fn check_command(&self) -> Result<(), CliError> {
        match self.command.first().map(|program| program.to_string_lossy()) {
            Some(word) if word.starts_with('-') => {
                let problem =
                    format!("\"{word}\" is no option; accepted: those of --help, a program's name or path");
                Err(CliError::Option { option: "COMMAND", problem })
            }
            _ => Ok(()),
        }
    }

    /// The programs that a guest needs beside the usual ones: it has no terminal, so there is no shell to type into.
    fn programs(&self) -> Result<Vec<String>, CliError> {
        let text = |word: &OsString| word.to_string_lossy().into_owned();
        let Some(program) = self.command.first().map(text) else {
            let problem = "a guest has no terminal; name the program to run, as in -- ping -c 3 far".to_owned();
            return Err(CliError::Option { option: "--lab", problem });
        };
        if self.internet {
            let problem = "a guest reaches nothing outside; leave --internet out".to_owned();
            return Err(CliError::Option { option: "--lab", problem });
        }
        let server = self.server.iter().filter_map(|server| server.split_whitespace().next());
        Ok(server.map(str::to_owned).chain([program]).collect())
    }

    /// The directions of each path: from the program, and to it.
    fn paths(&self) -> Result<Vec<[Link; 2]>, CliError> {
        let queue = |option, name: &str| {
            AlgorithmSpec::parse(Role::Queue, name)
                .map_err(|error| CliError::Option { option, problem: error.to_string() })
        };
        let queues = [
            queue("--up-queue", self.up_queue.as_ref().unwrap_or(&self.queue))?,
            queue("--queue", &self.queue)?,
        ];
        let read = |option, text: &str| {
            LinkSpec::parse_with_rtt(text, RTT).map_err(|error| CliError::of_link(option, &error))
        };
        if let Some(paths) = &self.paths {
            let texts: Vec<_> = paths.split(';').map(str::trim).filter(|text| !text.is_empty()).collect();
            let path = |(index, text): (usize, &&str)| {
                let names = ["up", "down"].map(|way| format!("path{index} {way}"));
                Ok(both(&read("--paths", text)?, &queues, names))
            };
            if texts.is_empty() {
                let problem = "no link is given; accepted: links apart by semicolons".to_owned();
                return Err(CliError::Option { option: "--paths", problem });
            }
            return texts.iter().enumerate().map(path).collect();
        }
        let names = || ["up", "down"].map(str::to_owned);
        let link = self.link.as_ref().map(|text| read("--link", text)).transpose()?;
        let of = |option, text: &Option<String>| {
            let link = text.as_ref().map(|text| read(option, text)).transpose()?.or_else(|| link.clone());
            Ok::<_, CliError>(link.map(|link| both(&link, &queues, names())))
        };
        let (up, down) = (of("--up", &self.up)?, of("--down", &self.down)?);
        // A way that nothing is said of only takes its time.
        let [up_way, down_way] = match (up, down) {
            (Some([up, _]), Some([_, down])) => [up, down],
            (Some([up, _]), None) => [up.clone(), alone(&up, "down", &queues[1])],
            (None, Some([_, down])) => [alone(&down, "up", &queues[0]), down],
            (None, None) => unreachable!("the command line asks for one of them"),
        };
        Ok(vec![[up_way, down_way]])
    }

    /// The files to write while packets pass.
    fn files(&self, paths: &[[Link; 2]]) -> Result<Option<Files>, CliError> {
        if self.pcap.is_none() && self.log.is_none() {
            return Ok(None);
        }
        let names = paths.iter().flatten().map(|link| link.name.clone()).collect();
        Files::create(self.pcap.as_deref(), self.log.as_deref(), names).map(Some)
    }

    /// Says what the links did.
    fn deliver(&self, reports: &[LinkReport]) -> Result<(), CliError> {
        if !self.quiet {
            for report in reports {
                eprint!("{}", summary(report));
            }
        }
        let header = ReportHeader {
            title: self.title(),
            description: String::new(),
            command: command_line(),
            version: VERSION.to_owned(),
            scenario_text: None,
        };
        let findings = Findings::new(header, "shell", vec![run_result("shell", self.seed, reports)]);
        if let Some(path) = &self.json {
            let text = json(&findings.header, &findings.runs, &[], None, JsonDetail::Series);
            std::fs::write(path, text).map_err(named(path))?;
        }
        if let Some(folder) = &self.out {
            let page = findings.write(folder)?;
            if !self.quiet {
                tell(format_args!("report: {}", page.display()));
            }
        }
        Ok(())
    }

    fn title(&self) -> String {
        let command =
            self.words().iter().map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ");
        format!("{command} over {}", self.links_title())
    }

    /// The links as they were given.
    fn links_title(&self) -> String {
        let mut links = Vec::new();
        for (name, link) in [("", &self.link), ("down ", &self.down), ("up ", &self.up), ("", &self.paths)] {
            links.extend(link.as_ref().map(|link| format!("{name}{link}")));
        }
        links.join(", ")
    }

    /// What runs.
    fn words(&self) -> Vec<OsString> {
        if self.command.is_empty() {
            vec![std::env::var_os("SHELL").unwrap_or_else(|| OsString::from("/bin/sh"))]
        } else {
            self.command.clone()
        }
    }

    fn set_stack(&self, namespace: &Namespace) -> Result<(), CliError> {
        let marks = [Some(&self.queue), self.up_queue.as_ref()].into_iter().flatten().any(|name| {
            let marks = |spec: AlgorithmSpec| {
                spec.arguments().any(|(name, value)| name == "ecn" && value == Value::Flag(true))
            };
            AlgorithmSpec::parse(Role::Queue, name).is_ok_and(marks)
        });
        if marks {
            namespace.set_sysctl("ipv4/tcp_ecn", "1")?;
        }
        // What one connection learnt of the link would shape the next.
        namespace.set_sysctl("ipv4/tcp_no_metrics_save", "1")?;
        // Whoever runs the program may ping.
        let _ = namespace.set_sysctl("ipv4/ping_group_range", "0 2147483647");
        if let Some(cc) = &self.cc {
            namespace.set_sysctl("ipv4/tcp_congestion_control", &kernel_name(cc)).map_err(|error| {
                CliError::Option { option: "--cc", problem: refused(namespace, cc, &error) }
            })?;
        }
        Ok(())
    }
}

/// Why `namespace` does not take `cc` for its congestion control.
fn refused(namespace: &Namespace, cc: &str, error: &LinuxError) -> String {
    let listed = |key: &str| {
        let known = namespace.sysctl(key).unwrap_or_default();
        known.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let known = listed("ipv4/tcp_available_congestion_control");
    if error.kind() == std::io::ErrorKind::PermissionDenied {
        let mut allowed = listed("ipv4/tcp_allowed_congestion_control");
        let accepted = allowed.join(", ");
        allowed.push(kernel_name(cc));
        return format!(
            "the kernel has \"{cc}\", but allows it in no network of its own, not even to root; accepted: {accepted}; \
             or allow it, as root: sysctl -w net.ipv4.tcp_allowed_congestion_control=\"{}\"",
            allowed.join(" ")
        );
    }
    format!("\"{cc}\" is none that the kernel has{}; accepted: {}", how_to_load(cc), known.join(", "))
}

#[cfg(feature = "bpf")]
fn how_to_load(cc: &str) -> String {
    suimon_linux::congestion::Algorithm::named(&cc.to_lowercase())
        .map_or(String::new(), |one| format!("; load it first, as root: suimon cc load {}", one.name))
}

#[cfg(not(feature = "bpf"))]
fn how_to_load(_: &str) -> String {
    String::new()
}

/// The kernel's name of a congestion control: its names have no hyphens.
fn kernel_name(cc: &str) -> String {
    cc.to_lowercase().replace(['-', '+'], "_")
}

/// What the program is told; `link` is said in the prompt.
fn environment(hosts: &TwoHosts, link: &str) -> Vec<(OsString, OsString)> {
    let first = &hosts.paths[0];
    let devices: Vec<_> = hosts.paths.iter().map(|path| format!("{}={}", path.device, path.near)).collect();
    let mut variables = vec![
        ("SUIMON_FAR", first.end.to_string()),
        ("SUIMON_FAR_V6", first.end_v6.to_string()),
        ("SUIMON_NEAR", first.near.to_string()),
        ("SUIMON_PATHS", devices.join(" ")),
    ];
    if std::io::stdin().is_terminal() {
        // bash shows it once, before its first prompt.
        let plain = |c: &char| c.is_ascii_alphanumeric() || " /.,=%-".contains(*c);
        let link: String = link.chars().filter(plain).collect();
        variables.push(("PROMPT_COMMAND", format!("PS1=\"[{link}] $PS1\"; unset PROMPT_COMMAND")));
    }
    variables.into_iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
}

/// What a link did, in a few lines.
fn summary(report: &LinkReport) -> String {
    let statistics = &report.statistics;
    let mut text = String::new();
    for direction in &statistics.directions {
        let totals = &direction.totals;
        let used =
            totals.utilisation.map_or(String::new(), |share| format!(", {:.1} % of the link", 100.0 * share));
        let lost = direction.lost();
        text += &format!(
            "suimon: {}: {} packets, {}{used}; waited {:.2} on the mean, {:.2} at most; {lost} lost, {} marked\n",
            totals.name, totals.packets, totals.bytes, totals.delay_mean, totals.delay_max, totals.marked,
        );
    }
    text += &format!("suimon: {}\n", lateness(report));
    if let Verdict::DoesNotCount(_) = statistics.verdict() {
        text += "suimon: try a slower link, or a machine with less to do\n";
    }
    text
}

/// How late the emulator was, and whether the numbers count.
fn lateness(report: &LinkReport) -> String {
    let statistics = &report.statistics;
    if statistics.directions.iter().all(|direction| direction.totals.packets == 0) {
        return format!("no packet crossed ({}), so there is nothing to judge", statistics.scheduling);
    }
    let late = &statistics.lateness;
    format!(
        "the emulator was {:.1} late on the median, {:.1} or more for 1 % of packets, {:.1} at most ({}): {}",
        late.p50,
        late.p99,
        late.max,
        statistics.scheduling,
        statistics.verdict(),
    )
}
