//! The files of a guest: programs with their libraries, under the names that they have here.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use cpio::newc::{Builder, ModeFileType, Reader, trailer};

use crate::error::{At, GuestError};

/// One entry of a tree.
#[derive(Debug, Clone)]
enum Node {
    Directory,
    Link(PathBuf),
    /// The contents and permissions of a file of this machine.
    Copy(PathBuf),
    /// A file of these contents.
    Own(Vec<u8>),
}

/// Files by their absolute paths, with the folders that they lie in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tree(BTreeMap<PathBuf, Node>);

impl Tree {
    /// Adds an empty folder.
    pub(crate) fn directory(&mut self, path: impl AsRef<Path>) {
        for folder in path.as_ref().ancestors().filter(|folder| folder.parent().is_some()) {
            self.0.entry(folder.to_owned()).or_insert(Node::Directory);
        }
    }

    /// Adds a symbolic link.
    pub(crate) fn link(&mut self, path: impl AsRef<Path>, target: impl Into<PathBuf>) {
        self.place(path.as_ref(), Node::Link(target.into()));
    }

    /// Adds a file of these contents.
    pub(crate) fn file(&mut self, path: impl AsRef<Path>, contents: impl Into<Vec<u8>>) {
        self.place(path.as_ref(), Node::Own(contents.into()));
    }

    /// Adds a copy of `from` as `path`.
    pub(crate) fn copy(&mut self, path: impl AsRef<Path>, from: impl Into<PathBuf>) {
        self.place(path.as_ref(), Node::Copy(from.into()));
    }

    fn place(&mut self, path: &Path, node: Node) {
        if let Some(folder) = path.parent() {
            self.directory(folder);
        }
        self.0.insert(path.to_owned(), node);
    }

    /// Adds a file or a folder of this machine under its own name, and the links that lead there.
    ///
    /// # Errors
    /// Where the path cannot be read.
    pub(crate) fn with_path(&mut self, path: &Path) -> Result<(), GuestError> {
        let path = std::path::absolute(path).at(path)?;
        let placed = self.place_of(&path)?;
        if fs::metadata(&path).at(&path)?.is_dir() {
            self.directory(&placed);
            let mut entries = fs::read_dir(&path).at(&path)?.collect::<io::Result<Vec<_>>>().at(&path)?;
            entries.sort_by_key(fs::DirEntry::file_name);
            for entry in entries {
                let kind = entry.file_type().at(entry.path())?;
                if kind.is_symlink() {
                    self.link(placed.join(entry.file_name()), fs::read_link(entry.path()).at(entry.path())?);
                } else if kind.is_dir() || kind.is_file() {
                    self.with_path(&entry.path())?;
                }
            }
        } else {
            self.copy(placed, path);
        }
        Ok(())
    }

    /// The path with the links of its folders resolved, each of which becomes a link of the tree.
    fn place_of(&mut self, path: &Path) -> Result<PathBuf, GuestError> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(path.to_owned());
        };
        let mut walked = PathBuf::new();
        for part in folder.components().filter(|part| !matches!(part, Component::CurDir)) {
            walked.push(part);
            if let Ok(target) = fs::read_link(&walked) {
                let real = walked.canonicalize().at(&walked)?;
                self.link(walked.clone(), target);
                self.directory(&real);
                walked = real;
            }
        }
        Ok(walked.join(name))
    }

    /// Adds a program, a name in `PATH` or a path, with its libraries or its interpreter.
    ///
    /// # Errors
    /// Where there is no such program, or it cannot be read.
    pub(crate) fn with_program(&mut self, name: &str) -> Result<(), GuestError> {
        let path = find_program(name).ok_or_else(|| GuestError::NoProgram(name.to_owned()))?;
        self.with_path(&path)?;
        if let Some(interpreter) = interpreter(&path).at(&path)? {
            return interpreter.iter().try_for_each(|word| self.with_program(word));
        }
        for library in libraries(&path)? {
            self.with_path(&library)?;
        }
        Ok(())
    }

    /// A text that differs whenever the contents do, without reading them.
    pub(crate) fn summary(&self) -> Result<String, GuestError> {
        let mut text = String::new();
        for (path, node) in &self.0 {
            let seen = match node {
                Node::Copy(from) => {
                    let file = fs::metadata(from).at(from)?;
                    format!(
                        "{from:?} {} {}.{:09} {:o}",
                        file.len(),
                        file.mtime(),
                        file.mtime_nsec(),
                        file.mode()
                    )
                }
                node => format!("{node:?}"),
            };
            text.push_str(&format!("{path:?} {seen}\n"));
        }
        Ok(text)
    }

    /// Writes all as an archive in the kernel's format.
    pub(crate) fn write(&self, mut out: impl Write) -> Result<(), GuestError> {
        for (number, (path, node)) in self.0.iter().enumerate() {
            let name = path.strip_prefix("/").unwrap_or(path).to_string_lossy();
            let (kind, permissions, contents) = match node {
                Node::Directory => (ModeFileType::Directory, 0o755, Vec::new()),
                Node::Link(target) => {
                    (ModeFileType::Symlink, 0o777, target.as_os_str().as_encoded_bytes().to_vec())
                }
                Node::Copy(from) => {
                    let executable = fs::metadata(from).at(from)?.mode() & 0o111 != 0;
                    let permissions = if executable { 0o755 } else { 0o644 };
                    (ModeFileType::Regular, permissions, fs::read(from).at(from)?)
                }
                Node::Own(contents) => (ModeFileType::Regular, 0o644, contents.clone()),
            };
            let size = u32::try_from(contents.len()).map_err(io::Error::other).at(path)?;
            let entry = Builder::new(&name).ino(number as u32 + 1).mode(permissions).set_mode_file_type(kind);
            let mut writer = entry.write(out, size);
            writer.write_all(&contents).at(path)?;
            out = writer.finish().at(path)?;
        }
        trailer(out).at("the end of an archive")?.flush().at("the end of an archive")
    }
}

/// Kinds of entries, by the bits of their mode.
const DIRECTORY: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

/// What an archive may bring beside files and folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// Links too: the archive comes from outside the guest.
    Made,
    /// None: the archive comes from inside, and a link could lead a later file out of the folder.
    LeftOut,
}

/// Reads an archive that [`Tree::write`] wrote, below `root`; returns the files.
pub(crate) fn unpack(mut archive: impl Read, root: &Path, links: Links) -> io::Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    loop {
        let mut entry = Reader::new(archive)?;
        if entry.entry().is_trailer() {
            return Ok(written);
        }
        let name = PathBuf::from(entry.entry().name());
        let mode = entry.entry().mode();
        let plain = name.components().all(|part| matches!(part, Component::Normal(_)));
        let kind = mode & 0o170_000;
        if !plain || (kind == LINK && links == Links::LeftOut) {
            archive = entry.finish()?;
            continue;
        }
        let path = root.join(&name);
        match kind {
            DIRECTORY => fs::create_dir_all(&path)?,
            LINK => {
                let mut target = String::new();
                entry.read_to_string(&mut target)?;
                let _ = fs::remove_file(&path);
                symlink(target, &path)?;
            }
            _ => {
                if let Some(folder) = path.parent() {
                    fs::create_dir_all(folder)?;
                }
                // A program that runs cannot be written over, only replaced.
                let _ = fs::remove_file(&path);
                let mut file = fs::File::create(&path)?;
                io::copy(&mut entry, &mut file)?;
                file.set_permissions(fs::Permissions::from_mode(mode & 0o777))?;
                written.push(name);
            }
        }
        archive = entry.finish()?;
    }
}

/// The path of a program: a path as it is, a name as `PATH` gives it.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| fs::metadata(path).is_ok_and(|file| file.is_file());
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(is_program);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Tools of the administrator are not in everybody's.
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(is_program)
}

/// The programs that the first line of a script names.
fn interpreter(path: &Path) -> io::Result<Option<Vec<String>>> {
    let mut begin = Vec::new();
    fs::File::open(path)?.take(256).read_to_end(&mut begin)?;
    let Some(line) = begin.strip_prefix(b"#!") else { return Ok(None) };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line).into_owned();
    let mut words = line.split_whitespace().map(str::to_owned);
    let first: Vec<_> = words.next().into_iter().collect();
    let is_env = first.first().is_some_and(|word| word.ends_with("/env"));
    let second = words.next().filter(|word| is_env && !word.starts_with('-'));
    Ok(Some(first.into_iter().chain(second).collect()))
}

/// The shared libraries that a program loads, with the loader itself.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, GuestError> {
    let listing = Command::new("ldd").arg(program).stdin(Stdio::null()).stderr(Stdio::null()).output();
    // What is linked statically has none, and makes ldd fail.
    let listing = listing.at("ldd")?;
    let text = String::from_utf8_lossy(&listing.stdout).into_owned();
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
    Ok(text.lines().filter_map(path).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let mut tree = Tree::default();
        tree.file("/etc/hosts", "127.0.0.1 localhost\n");
        tree.link("/bin", "usr/bin");
        tree.copy("/usr/bin/own", std::env::current_exe().unwrap());
        let mut archive = Vec::new();
        tree.write(&mut archive).unwrap();
        let written = unpack(archive.as_slice(), folder.path(), Links::Made).unwrap();
        assert_eq!(written, [PathBuf::from("etc/hosts"), PathBuf::from("usr/bin/own")]);
        assert_eq!(fs::read(folder.path().join("etc/hosts")).unwrap(), b"127.0.0.1 localhost\n");
        assert_eq!(fs::read_link(folder.path().join("bin")).unwrap(), PathBuf::from("usr/bin"));
        let mode = fs::metadata(folder.path().join("usr/bin/own")).unwrap().mode();
        assert_eq!(mode & 0o111, 0o111, "a program stays one");
    }

    #[test]
    fn nothing_is_written_above_the_folder_nor_through_a_link_that_the_archive_brings() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let mut tree = Tree::default();
        tree.0.insert(PathBuf::from("../above"), Node::Own(vec![1]));
        tree.link("/out", "..");
        tree.0.insert(PathBuf::from("/out/through"), Node::Own(vec![1]));
        tree.file("/taken", "");
        let mut archive = Vec::new();
        tree.write(&mut archive).unwrap();
        let written = unpack(archive.as_slice(), &inner, Links::LeftOut).unwrap();
        assert_eq!(written, [PathBuf::from("out/through"), PathBuf::from("taken")]);
        assert!(inner.join("out/through").exists(), "a folder stands in the link's place");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_program_brings_its_libraries_and_a_script_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        fs::write(&script, "#!/bin/sh\ntrue\n").unwrap();
        let mut tree = Tree::default();
        tree.with_program(script.to_str().unwrap()).unwrap();
        let names: Vec<_> = tree.0.keys().filter_map(|path| path.file_name()?.to_str()).collect();
        assert!(names.contains(&"script") && names.contains(&"sh"), "{names:?}");
        assert!(names.iter().any(|name| name.starts_with("libc.so")), "{names:?}");
        assert!(matches!(tree.with_program("no-such-program"), Err(GuestError::NoProgram(_))));
    }
}
