//! Compiles the programs in `bpf/` for the kernel, so that the command carries them. Where that cannot be, the
//! crate is built all the same, and says why when it is asked to load one.

mod clang;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Files of `bpf/`, without their `.bpf.c`.
const PROGRAMS: [&str; 16] = [
    "compound",
    "fs_at",
    "fs_at_cubic",
    "fs_at_open",
    "fs_at_shared",
    "vegas",
    "queue/ared",
    "queue/dpd_qt",
    "queue/even",
    "queue/incoming",
    "queue/pie",
    "queue/red",
    "queue/rem",
    "queue/rtt_aqm",
    "queue/shyu",
    "queue/sred",
];

fn main() {
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-env-changed=CLANG");
    if env::var_os("CARGO_FEATURE_BPF").is_none() {
        return;
    }
    let variable = |name| PathBuf::from(env::var_os(name).expect("cargo sets it"));
    let source = variable("CARGO_MANIFEST_DIR").join("bpf");
    let out = variable("OUT_DIR");
    println!("cargo:rerun-if-changed={}", source.display());
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let why_not = clang::why_not(&clang);
    if let Some(reason) = &why_not {
        println!("cargo:warning={reason}: `suimon cc load` will not work");
    }
    println!("cargo:rustc-env=SUIMON_WITHOUT_BPF={}", why_not.as_deref().unwrap_or_default());
    fs::create_dir_all(out.join("queue")).expect("cargo's own folder takes folders");
    for program in PROGRAMS {
        let object = out.join(program).with_extension("bpf.o");
        if why_not.is_none() {
            compile(&clang, &source.join(program).with_extension("bpf.c"), &object);
        } else {
            fs::write(&object, []).expect("cargo's own folder takes files");
        }
    }
}

fn compile(clang: &str, source: &Path, object: &Path) {
    let flags = ["-g", "-O2", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3", "-c"];
    // The debug information of the objects has no path of this machine.
    let folder = source.parent().expect("a file lies in a folder");
    let maps =
        [format!("-ffile-prefix-map={}=bpf", folder.display()), "-fdebug-compilation-dir=.".to_owned()];
    let status = Command::new(clang).args(flags).args(maps).arg(source).arg("-o").arg(object).status();
    assert!(status.is_ok_and(|status| status.success()), "{clang} refused {}", source.display());
}
