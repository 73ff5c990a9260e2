//! Writing, used as its callers do: what is promised of targets, modes, full disks, sets, edits in place and
//! processes that are killed.
//!
//! Tests that need a right, a file system or a program that the machine does not give say so, and pass.

mod basics;
mod claim;
mod copy;
mod folder;
mod head;
mod set;
#[cfg(unix)]
mod targets;

#[cfg(target_os = "linux")]
mod attributes;
#[cfg(target_os = "linux")]
#[path = "../engine/child.rs"]
#[expect(dead_code, reason = "the tests of the engine set other limits")]
mod child;
#[cfg(target_os = "linux")]
mod crash;
#[cfg(target_os = "linux")]
mod leftover;
#[cfg(target_os = "linux")]
mod order;
#[cfg(target_os = "linux")]
mod room;
#[cfg(target_os = "linux")]
#[path = "../engine/sanitizer.rs"]
mod sanitizer;
#[cfg(target_os = "linux")]
#[path = "../engine/seccomp.rs"]
mod seccomp;
#[cfg(target_os = "linux")]
mod trace;
#[cfg(target_os = "linux")]
mod user;
