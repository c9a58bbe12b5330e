//! A build without clang says so, and names the remedy.

#[path = "../build/clang.rs"]
mod clang;

#[test]
fn a_build_without_a_compiler_for_the_kernel_names_it() {
    let reason = clang::why_not("no-such-clang").unwrap();
    assert!(reason.starts_with("no-such-clang was not there when suimon was built"), "{reason}");
    // A program that is there, but no compiler.
    let reason = clang::why_not("true").unwrap();
    assert!(reason.contains("does not compile for BPF"), "{reason}");
}
