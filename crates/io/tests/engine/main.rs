//! The read engine, used as its callers do: what it promises when files, memory, threads and systems fail.
//!
//! Every load here ends with exactly the bytes that were asked for, or with an error that says where; none
//! hangs, which [`watch`] sees to.

mod cancel;
#[cfg(target_os = "linux")]
mod child;
mod faults;
mod faulty;
#[cfg(unix)]
mod files;
mod load;
#[cfg(target_os = "linux")]
mod memory;
mod plan;
#[cfg(target_os = "linux")]
mod ring;
mod sanitizer;
#[cfg(target_os = "linux")]
mod seccomp;
mod watch;
