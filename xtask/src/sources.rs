//! Rules that the source files of our crates keep.
//!
//! - No file holds more than [`MOST_LINES`] lines, its tests not counted: a
//!   longer one is split by noun.
//! - A crate without a reason for unsafe code forbids it at its root, where no
//!   inner attribute can allow it again.
//! - A crate that promises to build without std says so at its root;
//!   [`crate::no_std`] proves it.

use std::path::Path;

use anyhow::Result;

use crate::workspace::Package;
use crate::{files, no_std};

/// Lines that a source file may have before its tests.
const MOST_LINES: usize = 800;

/// The crates that may hold unsafe code: the benchmark, whose allocator counts
/// what it hands out, the crate that makes system calls, and the one that hands
/// memory to Python. The probes of [`crate::no_std`] and [`crate::sanitize`] are no
/// members.
const MAY_BE_UNSAFE: &[&str] = &["weigh-benches", "weigh-io", "weigh-python"];

/// The crates whose tests run under the sanitizers: those for which unsafe code has a
/// reason, save the benchmark, which has no tests of it, and Python's module, whose
/// tests are Python's.
pub(crate) const SANITIZED: &[&str] = &["weigh-io"];

/// Says which source files break a rule.
///
/// # Errors
///
/// When a file cannot be read.
pub(crate) fn check(packages: &[Package]) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for package in packages {
        let Some(entry) = package.entry_file() else {
            continue;
        };
        let shown = |path: &Path| {
            let inner = path.strip_prefix(package.folder()).unwrap_or(path);
            format!("{}: {}", package.name, inner.display())
        };
        let text = files::text(entry)?;
        for attribute in wanted_attributes(&package.name) {
            if !text.lines().any(|line| line.trim_end() == attribute) {
                faults.push(format!("{} lacks {attribute}", shown(entry)));
            }
        }
        for file in files::with_extension(entry.parent().unwrap_or(entry), "rs")? {
            let lines = lines_before_tests(&files::text(&file)?);
            if lines > MOST_LINES {
                faults.push(format!(
                    "{} has {lines} lines before its tests, over {MOST_LINES}: split it by noun",
                    shown(&file)
                ));
            }
        }
    }
    Ok(faults)
}

/// The attributes that must stand at the root of a crate.
fn wanted_attributes(package: &str) -> Vec<&'static str> {
    let mut attributes = Vec::new();
    if !MAY_BE_UNSAFE.contains(&package) {
        attributes.push("#![forbid(unsafe_code)]");
    }
    if no_std::PROMISED.contains(&package) {
        attributes.push("#![no_std]");
    }
    attributes
}

/// Counts the lines of a file up to the test module at its end, if it has one.
fn lines_before_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let tests = lines.windows(2).rposition(|pair| {
        pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{')
    });
    tests.unwrap_or(lines.len())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const TESTS: &str = "#[cfg(test)]\nmod tests {\n    fn long() {}\n}\n";

    #[test]
    fn only_the_test_module_at_the_end_is_not_counted() {
        for (text, want) in [
            (String::new(), 0),
            ("fn a() {}\n".to_owned(), 1),
            (format!("fn a() {{}}\n\n{TESTS}"), 2),
            ("#[cfg(test)]\nfn for_tests() {}\nfn a() {}\n".to_owned(), 3),
            ("#[cfg(test)]\nmod tests;\n".to_owned(), 2),
        ] {
            assert_eq!(lines_before_tests(&text), want, "{text:?}");
        }
    }

    #[test]
    fn what_a_root_must_say() {
        for (package, want) in [
            ("weigh-format", &["#![forbid(unsafe_code)]", "#![no_std]"][..]),
            ("weigh-inventory", &["#![forbid(unsafe_code)]"]),
            ("weigh", &["#![forbid(unsafe_code)]"]),
            ("weigh-io", &[]),
            ("weigh-benches", &[]),
        ] {
            assert_eq!(wanted_attributes(package), want, "{package}");
        }
    }

    #[test]
    fn unsafe_code_is_tested_under_the_sanitizers() {
        let without_tests = ["weigh-benches", "weigh-python"];
        for package in MAY_BE_UNSAFE.iter().filter(|package| !without_tests.contains(package)) {
            assert!(SANITIZED.contains(package), "{package}");
        }
    }

    #[test]
    fn broken_rules_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("src");
        fs::create_dir(&source).unwrap();
        fs::write(source.join("lib.rs"), "#![forbid(unsafe_code)]\n").unwrap();
        fs::write(source.join("exact.rs"), "\n".repeat(MOST_LINES) + TESTS).unwrap();
        fs::write(source.join("long.rs"), "\n".repeat(MOST_LINES + 1) + TESTS).unwrap();
        let package: Package = serde_json::from_value(serde_json::json!({
            "name": "weigh-format",
            "manifest_path": folder.path().join("Cargo.toml"),
            "dependencies": [],
            "targets": [{"kind": ["lib"], "src_path": source.join("lib.rs")}],
        }))
        .unwrap();
        let long = Path::new("src").join("long.rs");
        let root = Path::new("src").join("lib.rs");
        assert_eq!(
            check(&[package]).unwrap(),
            [
                format!("weigh-format: {} lacks #![no_std]", root.display()),
                format!(
                    "weigh-format: {} has 801 lines before its tests, over 800: split it by noun",
                    long.display()
                ),
            ]
        );
    }
}
