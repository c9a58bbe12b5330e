//! Programs of everybody's on the running kernel: iperf3, and an HTTP download by curl, each with ping beside it.

use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;

use serde::{Deserialize, Serialize};
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_emulator::{Setup, TwoHosts};
use suimon_linux::tcp::choose;
use suimon_live::{KernelNames, kernels_own};
use suimon_scenario::LinkSpec;
use suimon_study::comparison::Parsed;
use suimon_units::{Bytes, Duration};

use crate::error::LabError;

/// `[programs]` of `kernel.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Programs {
    /// Over which of the links, by name.
    pub(super) links: Vec<String>,
    /// How long iperf3 sends.
    pub(super) iperf3: Parsed<Duration>,
    /// How much curl downloads.
    pub(super) download: Parsed<Bytes>,
}

/// A program that everybody has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Program {
    /// iperf3, from the near host to the far one.
    #[serde(rename = "iperf3")]
    Iperf3,
    /// A download by curl.
    #[serde(rename = "HTTP")]
    Http,
}

impl Program {
    /// The command that it is run by.
    #[must_use]
    pub fn command(self) -> &'static str {
        match self {
            Self::Iperf3 => "iperf3",
            Self::Http => "curl",
        }
    }
}

/// One transfer of one program.
#[derive(Debug)]
pub struct Transfer<'a> {
    /// What makes it.
    pub program: Program,
    pub(super) link_name: &'a str,
    /// As `--link` has it.
    pub(super) link: &'a str,
    pub(super) seed: u64,
    pub(super) cc: &'a str,
    pub(super) window: Bytes,
    pub(super) programs: &'a Programs,
}

/// What a program and the ping beside it said.
#[derive(Debug, Serialize, Deserialize)]
pub struct Told {
    pub(super) throughput_kbps: f64,
    /// Of all pings that were answered, in milliseconds.
    pub(super) pings: Vec<f64>,
}

/// Programs that are to run here, and of the others why they do not.
pub(super) fn installed() -> (Vec<Program>, Vec<String>) {
    let missing = |name: &str| {
        let version = Command::new(name).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.err().map(|error| format!("{name} cannot be run here ({error}); install it to see its rows"))
    };
    if let Some(reason) = missing("ping") {
        return (Vec::new(), vec![reason]);
    }
    let (mut there, mut reasons) = (Vec::new(), Vec::new());
    for program in [Program::Iperf3, Program::Http] {
        match missing(program.command()) {
            None => there.push(program),
            Some(reason) => reasons.push(reason),
        }
    }
    (there, reasons)
}

impl<'a> Transfer<'a> {
    /// The row that it belongs to.
    pub(super) fn cell(&self) -> (Program, &'a str, &'a str) {
        (self.program, self.link_name, self.cc)
    }

    /// The time that it is thought to take.
    #[must_use]
    pub fn time(&self) -> Duration {
        *self.programs.iperf3
    }

    /// Makes it over an emulated link of its own, from the near host to the far one, and ping beside it, on a kernel that
    /// has congestion controls by these `names`.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn run(&self, names: &KernelNames) -> Result<Told, LabError> {
        let own = || kernels_own(self.cc).unwrap_or(self.cc);
        let kernel_cc = names.get(self.cc).map_or_else(own, String::as_str);
        let droptail = AlgorithmSpec::parse(Role::Queue, "droptail").map_err(io::Error::other)?;
        let directions = LinkSpec::parse(self.link)?.links(&droptail);
        let hosts = TwoHosts::new(&Setup { seed: self.seed, ..Setup::default() }, &[directions])?;
        // Half of a receive buffer is for the kernel's own records (tcp(7), tcp_adv_win_scale), so that this is what a
        // program gets that asks for a buffer of the window's size.
        let buffer = 2 * self.window.get();
        hosts.far.set_sysctl("ipv4/tcp_rmem", &format!("4096 {buffer} {buffer}"))?;
        let mut ping = Command::new("ping");
        // The far host's user waits for answers.
        let to = hosts.paths[0].near.to_string();
        ping.args(["-n", "-i", "0.5", &to]).env("LC_ALL", "C").stdin(Stdio::null()).stderr(Stdio::null());
        let mut ping = Ending(hosts.far.spawn(ping.stdout(Stdio::piped()))?);
        let answers = ping.0.stdout.take().expect("it is piped");
        thread::scope(|scope| {
            let pings = scope.spawn(move || {
                let lines = BufReader::new(answers).lines().map_while(Result::ok);
                lines.filter_map(|line| round_trip(&line)).collect()
            });
            let told = match self.program {
                Program::Iperf3 => iperf3(&hosts, kernel_cc, *self.programs.iperf3),
                Program::Http => http(&hosts, kernel_cc, *self.programs.download),
            };
            drop(ping);
            let pings = pings.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok(Told { throughput_kbps: told?, pings })
        })
    }
}

fn iperf3(hosts: &TwoHosts, kernel_cc: &str, duration: Duration) -> Result<f64, LabError> {
    let address = hosts.paths[0].far.to_string();
    let mut server = Command::new("iperf3");
    server.args(["--server", "--one-off", "--forceflush", "--bind", &address]);
    let mut server = Ending(hosts.far.spawn(server.stdin(Stdio::null()).stdout(Stdio::piped()))?);
    let said = BufReader::new(server.0.stdout.take().expect("it is piped"));
    // It says when it listens, and ends with its output unread else.
    let mut said = said.lines().map_while(Result::ok);
    if !said.any(|line| line.contains("listening")) {
        return Err(failed("iperf3", "its server did not begin to listen"));
    }
    let seconds = duration.as_secs_f64().ceil().to_string();
    let mut client = Command::new("iperf3");
    client.args(["--client", &address, "--congestion", kernel_cc, "--time", &seconds, "--json"]);
    let text = output(hosts.near.spawn(client.stdin(Stdio::null()).stdout(Stdio::piped()))?)?;
    let told: serde_json::Value = serde_json::from_str(&text).map_err(io::Error::from)?;
    match (told["end"]["sum_received"]["bits_per_second"].as_f64(), told["error"].as_str()) {
        (Some(rate), None) => Ok(rate / 1e3),
        (_, problem) => Err(failed("iperf3", problem.unwrap_or("it told no rate"))),
    }
}

fn http(hosts: &TwoHosts, kernel_cc: &str, size: Bytes) -> Result<f64, LabError> {
    let address = SocketAddr::from((hosts.paths[0].near, 8_080));
    let listener = hosts.near.run(|| TcpListener::bind(address))??;
    thread::scope(|scope| {
        let server = scope.spawn(|| serve_once(&listener, kernel_cc, size));
        let mut client = Command::new("curl");
        let format = "%{size_download} %{speed_download}";
        client.args(["--silent", "--show-error", "--output", "/dev/null", "--write-out", format]);
        client.args(["--max-time", "300", &format!("http://{address}/")]);
        let told = output(hosts.far.spawn(client.stdin(Stdio::null()).stdout(Stdio::piped()))?);
        // One that curl never reached still waits for it.
        let _ = hosts.far.run(|| TcpStream::connect_timeout(&address, std::time::Duration::from_secs(5)));
        server.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let told = told?;
        let mut numbers = told.split_whitespace().map(str::parse::<f64>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(got)), Some(Ok(speed))) if got == size.as_f64() => Ok(speed * 8.0 / 1e3),
            _ => Err(failed("curl", format!("it got less than {size}"))),
        }
    })
}

/// Answers one request, whatever it asks for, with `size` bytes of nothing.
fn serve_once(listener: &TcpListener, kernel_cc: &str, size: Bytes) -> io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    choose(&stream, kernel_cc)?;
    let mut request = Vec::new();
    let mut chunk = [0; 1 << 12];
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read(&mut chunk)? {
            0 => return Ok(()),
            read => request.extend_from_slice(&chunk[..read]),
        }
    }
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", size.get());
    stream.write_all(head.as_bytes())?;
    io::copy(&mut io::repeat(0).take(size.get()), &mut stream)?;
    Ok(())
}

/// The round-trip time that a line of ping tells of.
fn round_trip(line: &str) -> Option<f64> {
    line.split_once(" time=")?.1.split_once(' ')?.0.parse().ok()
}

/// All that a program says, once it has ended.
fn output(child: Child) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&child.wait_with_output()?.stdout).into_owned())
}

fn failed(program: &str, problem: impl Display) -> LabError {
    LabError::Io(io::Error::other(format!("{program}: {problem}")))
}

/// A program that ends with this.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pings_are_read_and_other_lines_are_not() {
        assert_eq!(round_trip("64 bytes from 10.0.0.1: icmp_seq=3 ttl=64 time=793 ms"), Some(793.0));
        assert_eq!(round_trip("64 bytes from 10.0.0.1: icmp_seq=3 ttl=64 time=0.024 ms"), Some(0.024));
        assert_eq!(round_trip("PING 10.0.0.1 (10.0.0.1) 56(84) bytes of data."), None);
    }
}
