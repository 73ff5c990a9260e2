//! Somebody else than the administrator, whom no permission binds.

use std::thread;

use rustix::fs::{Gid, Uid};
use rustix::process::geteuid;
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// A user and a group that are nobody's.
pub(crate) const SOMEBODY: u32 = 54_321;

pub(crate) fn is_administrator() -> bool {
    geteuid().is_root()
}

/// Does something as somebody else, in a thread of its own. Says so and does nothing if that may not be done.
pub(crate) fn as_somebody(test: impl FnOnce() + Send) {
    if !is_administrator() {
        eprintln!("skipped: only the administrator can be somebody else");
        return;
    }
    let become_somebody = || {
        let (user, group) = (Uid::from_raw(SOMEBODY), Gid::from_raw(SOMEBODY));
        set_thread_groups(&[])?;
        set_thread_res_gid(group, group, group)?;
        set_thread_res_uid(user, user, user)
    };
    thread::scope(|scope| {
        let done = scope.spawn(|| match become_somebody() {
            Ok(()) => test(),
            Err(error) => eprintln!("skipped: nobody else can be had here ({error})"),
        });
        done.join().unwrap();
    });
}
