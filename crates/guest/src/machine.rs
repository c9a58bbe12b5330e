//! The emulated machine: one processor whose instructions are its clock.
//!
//! Each instruction takes a nanosecond of virtual time, and time in which the guest does nothing passes at once. The guest gets no input from outside that comes when this machine likes: no network, no
//! disk, no terminal, no random numbers of the processor.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use suimon_units::Bytes;

use crate::error::{At, GuestError};
use crate::job::ARCHIVE_AT;
use crate::kernel::last_words;
use crate::tree::find_program;

const EMULATOR: &str = "qemu-system-x86_64";

/// The room that the files of a job have.
pub(crate) const ROOM: Bytes = Bytes::new((256 << 20) - ARCHIVE_AT);

/// The emulator answers within milliseconds; on a busy machine it may take this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// An instruction takes a nanosecond, and time in which nothing is to be done passes at once.
const CLOCK: &str = "shift=0,sleep=off";
/// The same for jobs. The emulator has a thread that executes instructions, and one that lets time jump when the first is
/// idle. The second may look in the microsecond after the first said that it is idle and before it has counted its last
/// instructions; time then jumps too far by these. While it records a run, each waits for the other. The record itself
/// is of no use, and a recorder cannot save its state.
const CLOCK_IN_STEP: &str = "shift=0,sleep=off,rr=record,rrfile=/dev/null";

const COMMAND_LINE: &str = "console=ttyS0 quiet panic=-1 nokaslr random.trust_bootloader=off random.trust_cpu=off \
     tsc=reliable tsc_early_khz=1000000 mitigations=off rootfstype=ramfs initcall_blacklist=load_system_certificate_list";

/// The parts that a machine starts with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) kernel: PathBuf,
    pub(crate) initrd: PathBuf,
    pub(crate) memory: Bytes,
}

/// The version of the emulator.
pub(crate) fn emulator_version() -> Result<String, GuestError> {
    let missing = || GuestError::Missing { program: EMULATOR.to_owned(), package: "qemu-system-x86" };
    find_program(EMULATOR).ok_or_else(missing)?;
    let said = Command::new(EMULATOR).arg("--version").output().at(EMULATOR)?;
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    Ok(text.lines().next().unwrap_or_default().trim_start_matches("QEMU emulator version ").to_owned())
}

/// The arguments that decide what the guest sees; the rest are files.
pub(crate) fn arguments(memory: Bytes) -> Vec<String> {
    let megabytes = memory.get() >> 20;
    let room = (ROOM.get() + ARCHIVE_AT) >> 20;
    let most = megabytes + 2 * room;
    [
        "-nodefaults -no-user-config -display none -no-reboot -accel tcg,thread=single".to_owned(),
        "-cpu max,-rdrand,-rdseed -M pc,nvdimm=on".to_owned(),
        "-rtc base=2026-01-01T00:00:00,clock=vm".to_owned(),
        format!("-m {megabytes}M,slots=2,maxmem={most}M -device nvdimm,id=nvdimm,memdev=job,unarmed=on"),
        "-device virtio-serial-pci,ioeventfd=off".to_owned(),
        "-device virtserialport,chardev=results,name=results".to_owned(),
    ]
    .iter()
    .flat_map(|words| words.split(' ').map(str::to_owned).collect::<Vec<_>>())
    .chain(["-append".to_owned(), COMMAND_LINE.to_owned()])
    .collect()
}

/// A machine that runs, and ends when this is dropped, or when this process ends.
#[derive(Debug)]
pub(crate) struct Machine {
    emulator: Child,
    folder: PathBuf,
}

impl Machine {
    /// Starts a machine, whose files lie in `folder`: `job`, a file that it may read, and what it writes.
    /// `saved` is the state in which it goes on.
    pub(crate) fn start(parts: &Parts, folder: &Path, saved: Option<&Path>) -> Result<Self, GuestError> {
        let within = |name: &str| folder.join(name).display().to_string();
        // The kernel ends the emulator when this process ends, however that happens.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", EMULATOR]).args(arguments(parts.memory));
        command.arg("-kernel").arg(&parts.kernel).arg("-initrd").arg(&parts.initrd);
        let room = ROOM.get() + ARCHIVE_AT;
        command.args([
            "-object".to_owned(),
            format!(
                "memory-backend-file,id=job,share=on,readonly=on,size={room},mem-path={}",
                within("job").replace(',', ",,")
            ),
            "-serial".to_owned(),
            format!("file:{}", within("console")),
            "-chardev".to_owned(),
            format!("file,id=results,path={}", within("results").replace(',', ",,")),
            "-qmp".to_owned(),
            format!("unix:{},server=on,wait=off", within("control")),
        ]);
        command.args(if saved.is_some() {
            ["-icount", CLOCK_IN_STEP, "-incoming", "defer"].as_slice()
        } else {
            &["-icount", CLOCK]
        });
        let complaints = File::create(folder.join("complaints")).at(folder)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(complaints);
        let emulator = command.spawn().at("setpriv")?;
        let mut machine = Self { emulator, folder: folder.to_owned() };
        if let Some(saved) = saved {
            let uri = format!("exec:exec cat {}", quoted(saved));
            machine.control()?.say("migrate-incoming", &json!({ "uri": uri }))?;
        }
        Ok(machine)
    }

    /// The emulator's control socket, once it is there. What is handed over or saved is all but the job's file.
    fn control(&mut self) -> Result<Control, GuestError> {
        let path = self.folder.join("control");
        let begun = Instant::now();
        let stream = loop {
            match UnixStream::connect(&path) {
                Ok(stream) => break stream,
                _ if self.ended()?.is_some() => {
                    return Err(GuestError::Ended { last_words: self.last_words() });
                }
                Err(error) if begun.elapsed() > PATIENCE => return Err(error).at(&path),
                Err(_) => sleep(Duration::from_millis(2)),
            }
        };
        let mut control = Control::over(stream)?;
        let without = json!({ "capabilities": [{ "capability": "x-ignore-shared", "state": true }] });
        control.say("migrate-set-capabilities", &without)?;
        Ok(control)
    }

    /// The emulator's end, where it has ended.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, GuestError> {
        self.emulator.try_wait().at(EMULATOR)
    }

    /// The last words of the emulator, or else of the kernel.
    pub(crate) fn last_words(&self) -> String {
        let read = |name| std::fs::read(self.folder.join(name)).unwrap_or_default();
        let complaints = read("complaints");
        last_words(if complaints.is_empty() { read("console") } else { complaints }.as_slice())
    }

    /// Stops the guest, and writes its state to `path`.
    pub(crate) fn save(&mut self, path: &Path) -> Result<(), GuestError> {
        let mut control = self.control()?;
        let most = json!({ "max-bandwidth": 1_u64 << 40 });
        control.say("migrate-set-parameters", &most)?;
        control.say("migrate", &json!({ "uri": format!("exec:cat > {}", quoted(path)) }))?;
        let begun = Instant::now();
        loop {
            let told = control.say("query-migrate", &json!({}))?;
            match told["status"].as_str() {
                Some("completed") => return Ok(()),
                Some("failed" | "cancelled") => break,
                _ if begun.elapsed() > PATIENCE => break,
                _ => sleep(Duration::from_millis(20)),
            }
        }
        Err(GuestError::Failed {
            program: EMULATOR.to_owned(),
            message: "the state was not saved".to_owned(),
        })
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Both fail only where it has ended already.
        let _ = self.emulator.kill();
        let _ = self.emulator.wait();
    }
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// The emulator's control socket (QEMU Machine Protocol): a line of JSON for each command and each answer.
struct Control {
    lines: BufReader<UnixStream>,
}

impl Control {
    fn over(stream: UnixStream) -> Result<Self, GuestError> {
        stream.set_read_timeout(Some(PATIENCE)).at("the emulator's control socket")?;
        let mut control = Self { lines: BufReader::new(stream) };
        control.answer()?;
        control.say("qmp_capabilities", &json!({}))?;
        Ok(control)
    }

    fn say(&mut self, command: &str, arguments: &Value) -> Result<Value, GuestError> {
        let line = json!({ "execute": command, "arguments": arguments }).to_string();
        self.lines.get_mut().write_all(line.as_bytes()).at("the emulator's control socket")?;
        let answer = self.answer()?;
        match answer.get("error") {
            Some(error) => Err(GuestError::Failed {
                program: format!("{EMULATOR}: {command}"),
                message: error.to_string(),
            }),
            None => Ok(answer["return"].clone()),
        }
    }

    /// The next line that is no event.
    fn answer(&mut self) -> Result<Value, GuestError> {
        loop {
            let mut line = String::new();
            self.lines.read_line(&mut line).at("the emulator's control socket")?;
            let Ok(value) = serde_json::from_str::<Value>(&line) else {
                let message = "its control socket was closed".to_owned();
                return Err(GuestError::Failed { program: EMULATOR.to_owned(), message });
            };
            if value.get("event").is_none() {
                return Ok(value);
            }
        }
    }
}
