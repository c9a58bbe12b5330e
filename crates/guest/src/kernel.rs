//! Kernels of a distribution, taken apart and kept in a cache.
//!
//! Nothing is installed: packages are downloaded by apt with lists of its own, and unpacked. The image is kept as an ELF
//! file, which the emulator starts without the kernel's own decompression; that takes the longest part of a boot.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{At, GuestError};
use crate::store::Store;

/// Debian's archive, for machines whose own apt knows none.
const MIRROR: &str = "http://deb.debian.org/debian";
/// Suites with kernels, the newest first.
const SUITES: [&str; 5] = ["sid", "trixie-backports", "trixie", "bookworm-backports", "bookworm"];
/// The flavour for virtual machines, the smallest.
const FLAVOUR: &str = "cloud-amd64";
/// What of the modules a guest takes: networks, and the ways in and out.
const MODULES: [&str; 10] = [
    "arch/x86/crypto",
    "crypto",
    "drivers/acpi/nfit",
    "drivers/char",
    "drivers/dax",
    "drivers/net",
    "drivers/nvdimm",
    "drivers/virtio",
    "lib",
    "net",
];
/// Folders of these of which a guest has no use: network cards, radios and telephones.
const LEFT_OUT: [&str; 12] = [
    "drivers/char/agp",
    "drivers/char/hw_random",
    "drivers/char/ipmi",
    "drivers/char/tpm",
    "drivers/net/can",
    "drivers/net/ethernet",
    "drivers/net/fddi",
    "drivers/net/phy",
    "drivers/net/usb",
    "drivers/net/wireless",
    "drivers/net/wwan",
    "net/mac80211",
];

/// A kernel that is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Its version, as in `7.2.13+deb14-cloud-amd64`.
    pub version: String,
    pub(crate) folder: PathBuf,
}

impl Kernel {
    /// The image, an ELF file.
    pub(crate) fn image(&self) -> PathBuf {
        self.folder.join("vmlinux")
    }

    /// The kernels that are set up, the newest first.
    ///
    /// # Errors
    /// Where the cache cannot be read.
    pub fn all(store: &Store) -> Result<Vec<Self>, GuestError> {
        let folder = store.kernels()?;
        let mut kernels = Vec::new();
        for entry in fs::read_dir(&folder).at(&folder)? {
            let entry = entry.at(&folder)?;
            let version = entry.file_name().to_string_lossy().into_owned();
            if entry.path().join("vmlinux").exists() {
                kernels.push(Self { version, folder: entry.path() });
            }
        }
        kernels.sort_by(|one, other| by_version(&other.version, &one.version));
        Ok(kernels)
    }

    /// The newest kernel whose version begins with `asked`.
    ///
    /// # Errors
    /// Where none is set up.
    pub fn find(store: &Store, asked: Option<&str>) -> Result<Self, GuestError> {
        let all = Self::all(store)?;
        if all.is_empty() {
            return Err(GuestError::NotSetUp);
        }
        let begins = |kernel: &&Self| asked.is_none_or(|asked| is_of(&kernel.version, asked));
        all.iter().find(begins).cloned().ok_or_else(|| GuestError::NoKernel {
            asked: asked.unwrap_or_default().to_owned(),
            known: all.iter().map(|kernel| kernel.version.as_str()).collect::<Vec<_>>().join(", "),
        })
    }

    /// Downloads the newest kernel whose version begins with `asked`, and takes it apart; tells what is being done.
    ///
    /// # Errors
    /// Where a program is missing or fails, or no suite has such a kernel.
    pub fn set_up(
        store: &Store,
        asked: Option<&str>,
        mirror: Option<&str>,
        tell: &dyn Fn(&str),
    ) -> Result<Self, GuestError> {
        for (program, package) in [
            ("apt-get", "apt"),
            ("dpkg-deb", "dpkg"),
            ("depmod", "kmod"),
            ("zstd", "zstd"),
            ("xz", "xz-utils"),
        ] {
            crate::tree::find_program(program)
                .ok_or_else(|| GuestError::Missing { program: program.to_owned(), package })?;
        }
        let work = store.scratch()?;
        let mirror = mirror.map_or_else(own_mirror, str::to_owned);
        for suite in SUITES {
            tell(&format!("looking for a kernel in {suite} of {mirror}"));
            let apt = Apt::new(&work.path().join(suite), &mirror, suite)?;
            let Some(release) = apt.newest_kernel(asked)? else { continue };
            let kernel = Self { folder: store.kernels()?.join(&release), version: release };
            if kernel.image().exists() {
                tell(&format!("{} is there", kernel.version));
                return Ok(kernel);
            }
            tell(&format!("downloading {}", kernel.version));
            let parts = apt.download(&kernel.version)?;
            tell(&format!("taking {} apart", kernel.version));
            let ready = work.path().join("ready");
            take_apart(&parts, &kernel.version, &ready)?;
            fs::rename(&ready, &kernel.folder).at(&kernel.folder)?;
            return Ok(kernel);
        }
        Err(GuestError::NotOffered { asked: asked.unwrap_or_default().to_owned(), suites: SUITES.join(", ") })
    }
}

/// True where `version` is `asked`, or more exact.
fn is_of(version: &str, asked: &str) -> bool {
    version.strip_prefix(asked).is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
}

/// Versions by their numbers.
fn by_version(one: &str, other: &str) -> Ordering {
    let numbers = |version: &str| -> Vec<u64> {
        version.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
    };
    numbers(one).cmp(&numbers(other))
}

/// The archive that this machine's apt gets Debian's packages from.
fn own_mirror() -> String {
    let listed = Command::new("apt-get")
        .args(["indextargets", "--format", "$(REPO_URI)", "Label: Debian", "Identifier: Packages"])
        .stderr(Stdio::null())
        .output();
    let text = listed.map(|listed| String::from_utf8_lossy(&listed.stdout).into_owned()).unwrap_or_default();
    text.lines().next().map_or_else(|| MIRROR.to_owned(), |line| line.trim_end_matches('/').to_owned())
}

/// Apt with lists of its own, in a folder of its own.
struct Apt {
    folder: PathBuf,
}

impl Apt {
    fn new(folder: &Path, mirror: &str, suite: &str) -> Result<Self, GuestError> {
        for inner in ["lists/partial", "archives/partial", "parts"] {
            let inner = folder.join(inner);
            fs::create_dir_all(&inner).at(&inner)?;
        }
        let sources = folder.join("sources.list");
        let key = "/usr/share/keyrings/debian-archive-keyring.gpg";
        fs::write(&sources, format!("deb [signed-by={key}] {mirror} {suite} main\n")).at(&sources)?;
        let apt = Self { folder: folder.to_owned() };
        run(apt.command("apt-get").arg("update").arg("-qq"))?;
        Ok(apt)
    }

    fn command(&self, program: &str) -> Command {
        let folder = self.folder.display();
        let mut command = Command::new(program);
        for option in [
            format!("Dir::Etc::sourcelist={folder}/sources.list"),
            "Dir::Etc::sourceparts=-".to_owned(),
            format!("Dir::State::lists={folder}/lists"),
            format!("Dir::Cache={folder}"),
            "APT::Architecture=amd64".to_owned(),
            "APT::Architectures=amd64".to_owned(),
            "APT::Sandbox::User=root".to_owned(),
            "Acquire::Languages=none".to_owned(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".to_owned(),
        ] {
            command.args(["-o", &option]);
        }
        command.current_dir(self.folder.join("parts"));
        command
    }

    /// The version of the newest kernel in the lists.
    fn newest_kernel(&self, asked: Option<&str>) -> Result<Option<String>, GuestError> {
        let names = run(self.command("apt-cache").arg("pkgnames").arg("linux-image-"))?;
        let version = |name: &str| {
            let version = name.strip_prefix("linux-image-")?;
            let kernel =
                version.starts_with(|first: char| first.is_ascii_digit()) && version.ends_with(FLAVOUR);
            (kernel && asked.is_none_or(|asked| is_of(version, asked))).then(|| version.to_owned())
        };
        Ok(names.lines().filter_map(version).max_by(|one, other| by_version(one, other)))
    }

    /// Downloads the packages of a kernel: in some releases it is one, in others each part has its own.
    fn download(&self, version: &str) -> Result<Vec<PathBuf>, GuestError> {
        let known = run(self.command("apt-cache").arg("pkgnames").arg("linux-"))?;
        let parts = ["binary", "modules", "base"].map(|part| format!("linux-{part}-{version}"));
        let whole = [format!("linux-image-{version}")];
        let is_known = |name: &String| known.lines().any(|line| line == name);
        let names: &[String] = if parts.iter().all(is_known) { &parts } else { &whole };
        run(self.command("apt-get").args(["-qq", "download"]).args(names))?;
        let folder = self.folder.join("parts");
        let files = fs::read_dir(&folder).at(&folder)?;
        let is_package = |path: &PathBuf| path.extension() == Some(OsStr::new("deb"));
        Ok(files.filter_map(|file| file.ok().map(|file| file.path())).filter(is_package).collect())
    }
}

/// Unpacks the packages of a kernel, and keeps what a guest takes.
fn take_apart(packages: &[PathBuf], version: &str, ready: &Path) -> Result<(), GuestError> {
    let raw = ready.with_extension("raw");
    for package in packages {
        run(Command::new("dpkg-deb").arg("-x").arg(package).arg(&raw))?;
    }
    let first = |paths: [String; 2]| {
        let [one, other] = paths.map(|path| raw.join(path));
        if one.exists() { one } else { other }
    };
    let modules = first([format!("usr/lib/modules/{version}"), format!("lib/modules/{version}")]);
    let image = first([format!("usr/lib/modules/{version}/vmlinuz"), format!("boot/vmlinuz-{version}")]);
    fs::create_dir_all(ready).at(ready)?;
    unpack_image(&image, &ready.join("vmlinux"))?;
    let kept = ready.join(format!("lib/modules/{version}"));
    for part in MODULES {
        copy_modules(&modules.join("kernel"), Path::new(part), &kept.join("kernel"))?;
    }
    for list in ["modules.builtin", "modules.order", "modules.builtin.modinfo"] {
        fs::copy(modules.join(list), kept.join(list)).at(modules.join(list))?;
    }
    run(Command::new("depmod").arg("-b").arg(ready).arg(version))?;
    Ok(())
}

fn copy_modules(from: &Path, part: &Path, to: &Path) -> Result<(), GuestError> {
    let folder = from.join(part);
    if LEFT_OUT.iter().any(|left_out| part == Path::new(left_out)) || !folder.exists() {
        return Ok(());
    }
    fs::create_dir_all(to.join(part)).at(to)?;
    for entry in fs::read_dir(&folder).at(&folder)? {
        let entry = entry.at(&folder)?;
        let inner = part.join(entry.file_name());
        if entry.file_type().at(entry.path())?.is_dir() {
            copy_modules(from, &inner, to)?;
        } else {
            fs::copy(entry.path(), to.join(&inner)).at(entry.path())?;
            if inner.extension() == Some(OsStr::new("xz")) {
                // Here it takes a moment, in a guest a good part of the boot.
                run(Command::new("xz").arg("-d").arg(to.join(&inner)))?;
            }
        }
    }
    Ok(())
}

/// Writes the ELF file that a kernel's image holds, compressed: the boot protocol of x86 says where
/// (Documentation/arch/x86/boot.rst: `setup_sects`, `payload_offset`, `payload_length`).
fn unpack_image(image: &Path, elf: &Path) -> Result<(), GuestError> {
    let refuse = |problem| GuestError::Image { path: image.to_owned(), problem };
    let bytes = fs::read(image).at(image)?;
    let number = |at: usize| {
        let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
        four.map(|four| u32::from_le_bytes(four) as usize)
    };
    if bytes.get(0x202..0x206) != Some(b"HdrS") {
        return Err(refuse("is no image of the boot protocol"));
    }
    let setup = (usize::from(bytes[0x1f1]) + 1) * 512;
    let (Some(offset), Some(length)) = (number(0x248), number(0x24c)) else {
        return Err(refuse("is cut off"));
    };
    let begin = setup + offset;
    // The last four bytes are the size of what is packed.
    let end = (begin + length).checked_sub(4).ok_or_else(|| refuse("has no kernel in it"))?;
    let payload = bytes.get(begin..end).ok_or_else(|| refuse("is cut off"))?;
    let program = match payload {
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "zstd",
        [0xfd, b'7', b'z', b'X', ..] => "xz",
        [0x1f, 0x8b, ..] => "gzip",
        [0x02, 0x21, 0x4c, 0x18, ..] => "lz4",
        _ => return Err(refuse("is compressed in an unknown way")),
    };
    let packed = elf.with_extension("packed");
    fs::write(&packed, payload).at(&packed)?;
    let from = fs::File::open(&packed).at(&packed)?;
    let out = fs::File::create(elf).at(elf)?;
    let done = Command::new(program).arg("-dc").stdin(from).stdout(out).stderr(Stdio::piped()).output();
    let done = done.at(program)?;
    fs::remove_file(&packed).at(&packed)?;
    if fs::read(elf).at(elf)?.starts_with(b"\x7fELF") {
        return Ok(());
    }
    Err(GuestError::Failed { program: program.to_owned(), message: last_words(&done.stderr) })
}

/// Runs a program to its end, and returns what it printed.
fn run(command: &mut Command) -> Result<String, GuestError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let done = command.stdin(Stdio::null()).output().at(&program)?;
    if !done.status.success() {
        return Err(GuestError::Failed { program, message: last_words(&done.stderr) });
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// The last line of a program's complaint, or a kernel's reason for its panic, which a trace follows.
pub(crate) fn last_words(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let panic = text.lines().find(|line| line.contains("Kernel panic"));
    let last = || text.lines().rev().find(|line| !line.trim().is_empty());
    panic.or_else(last).unwrap_or("it said nothing").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_are_the_last_line_or_the_reason_of_a_panic() {
        assert_eq!(last_words(b"one\ntwo\n\n"), "two");
        assert_eq!(last_words(b""), "it said nothing");
        let panic =
            b"[ 1.5] Kernel panic - not syncing: stack\n[ 1.5] Call Trace:\n[ 1.6] Kernel Offset: disabled\n";
        assert_eq!(last_words(panic), "[ 1.5] Kernel panic - not syncing: stack");
    }

    #[test]
    fn a_version_is_found_by_its_beginning_and_newer_is_by_number() {
        assert!(is_of("6.1.0-50-cloud-amd64", "6.1") && is_of("6.1.0-50-cloud-amd64", "6.1.0-50"));
        assert!(!is_of("6.12.3-cloud-amd64", "6.1"));
        assert_eq!(by_version("6.1.0-9", "6.1.0-50"), Ordering::Less);
        assert_eq!(by_version("7.2.13", "6.12.40"), Ordering::Greater);
    }

    #[test]
    fn what_is_no_kernel_is_refused_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("vmlinuz");
        let mut cut_off = vec![0_u8; 0x206];
        cut_off[0x202..].copy_from_slice(b"HdrS");
        for (contents, problem) in [(vec![7_u8; 9], "is no image"), (cut_off, "is cut off")] {
            fs::write(&image, contents).unwrap();
            let refused = unpack_image(&image, &folder.path().join("vmlinux")).unwrap_err().to_string();
            assert!(refused.contains("vmlinuz") && refused.contains(problem), "{refused}");
        }
    }
}
