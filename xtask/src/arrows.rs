//! The arrows between our crates, and the check that there are no others.
//!
//! [`ALLOWED`] is the architecture as a table: what each library crate and
//! program may depend on, among our own. It holds for ordinary, build and test
//! dependencies alike, so that a crate's tests need nothing above it either. A
//! new crate is put in the table before it builds in CI; third-party
//! dependencies are no business of this check.

use crate::workspace::Package;

/// Each crate with those of ours that it may depend on.
///
/// A crate may only name crates above its own line, so the table cannot
/// describe a cycle.
const ALLOWED: &[(&str, &[&str])] = &[
    ("weigh-format", &[]),
    ("weigh-inventory", &["weigh-format"]),
    ("weigh-values", &["weigh-format"]),
    ("weigh-pickle", &["weigh-format"]),
    ("weigh-io", &[]),
    ("weigh", &["weigh-format", "weigh-inventory", "weigh-values", "weigh-pickle", "weigh-io"]),
    ("weigh-cli", &["weigh"]),
    ("weigh-python", &["weigh", "weigh-cli"]),
];

/// Tools around the crates: they may use any of them, nothing may use them.
const TOOLS: &[&str] = &["xtask", "weigh-benches"];

/// Says which arrows between workspace members are not in the table.
pub(crate) fn check(packages: &[Package]) -> Vec<String> {
    let ours: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let mut faults = Vec::new();
    for package in packages {
        let name = package.name.as_str();
        let is_tool = TOOLS.contains(&name);
        let allowed = ALLOWED.iter().find(|(from, _)| *from == name).map(|(_, to)| *to);
        if allowed.is_none() && !is_tool {
            faults.push(format!("{name} is not in the table of {}", file!()));
            continue;
        }
        for dependency in &package.dependencies {
            let to = dependency.name.as_str();
            if !ours.contains(&to) {
                continue;
            }
            let fine = match allowed {
                Some(allowed) => allowed.contains(&to),
                None => !TOOLS.contains(&to),
            };
            if !fine {
                let kind =
                    dependency.kind.as_deref().map_or(String::new(), |kind| format!("{kind}-"));
                faults.push(format!("{name} may not have {to} as a {kind}dependency"));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_names_only_crates_above_its_line() {
        for (line, (from, to)) in ALLOWED.iter().enumerate() {
            for name in *to {
                let above = ALLOWED[..line].iter().any(|(earlier, _)| earlier == name);
                assert!(above, "{from} names {name}, which is not above it");
            }
        }
    }

    #[test]
    fn every_name_of_the_table_is_a_member() {
        let members = crate::workspace::Workspace::load().unwrap().packages;
        for name in ALLOWED.iter().map(|(name, _)| name).chain(TOOLS) {
            assert!(members.iter().any(|package| package.name == *name), "{name}");
        }
    }

    #[test]
    fn arrows_outside_the_table_are_faults() {
        for (from, to, kind, want) in [
            ("weigh-inventory", "weigh-format", None, None),
            ("weigh-inventory", "serde", None, None),
            ("weigh-benches", "weigh-cli", None, None),
            (
                "weigh-format",
                "weigh-io",
                None,
                Some("weigh-format may not have weigh-io as a dependency"),
            ),
            (
                "weigh-inventory",
                "weigh",
                Some("dev"),
                Some("weigh-inventory may not have weigh as a dev-dependency"),
            ),
            (
                "weigh-cli",
                "weigh-format",
                Some("build"),
                Some("weigh-cli may not have weigh-format as a build-dependency"),
            ),
            ("weigh", "xtask", Some("dev"), Some("weigh may not have xtask as a dev-dependency")),
            (
                "xtask",
                "weigh-benches",
                None,
                Some("xtask may not have weigh-benches as a dependency"),
            ),
        ] {
            let faults = check(&sample(from, to, kind));
            let got: Vec<&str> = faults.iter().map(String::as_str).collect();
            assert_eq!(got, want.into_iter().collect::<Vec<_>>(), "{from} -> {to}");
        }
    }

    #[test]
    fn a_crate_that_the_table_does_not_know_is_a_fault() {
        let faults = check(&sample("weigh-surprise", "serde", None));
        assert_eq!(faults, [format!("weigh-surprise is not in the table of {}", file!())]);
    }

    /// A workspace in which `from` depends on `to`; `to` is a member unless its
    /// name is not one of ours.
    fn sample(from: &str, to: &str, kind: Option<&str>) -> Vec<Package> {
        let package = |name: &str, dependencies: serde_json::Value| {
            serde_json::json!({
                "name": name,
                "manifest_path": "Cargo.toml",
                "dependencies": dependencies,
                "targets": [],
            })
        };
        let mut packages = vec![package(from, serde_json::json!([{"name": to, "kind": kind}]))];
        if to.starts_with("weigh") || to == "xtask" {
            packages.push(package(to, serde_json::json!([])));
        }
        serde_json::from_value(packages.into()).unwrap()
    }
}
