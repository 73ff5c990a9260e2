//! Forbids system calls, as containers do.
#![expect(unsafe_code, reason = "the system is given a filter")]

use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};

/// Lets this thread and those that it starts have `error` in place of these calls. `false` if the system has
/// no such filters.
pub(crate) fn forbid(calls: [libc::c_long; 2], error: i32) -> bool {
    let step = |code: u32, k: u32, then: u8, otherwise: u8| libc::sock_filter {
        code: code.try_into().unwrap(),
        jt: then,
        jf: otherwise,
        k,
    };
    let [first, second] = calls.map(|call| u32::try_from(call).unwrap());
    let denied = libc::SECCOMP_RET_ERRNO | u32::try_from(error).unwrap();
    let mut steps = [
        // The number of the system call is the first thing that a filter sees.
        step(BPF_LD | BPF_W | BPF_ABS, 0, 0, 0),
        step(BPF_JMP | BPF_JEQ | BPF_K, first, 1, 0),
        step(BPF_JMP | BPF_JEQ | BPF_K, second, 0, 1),
        step(BPF_RET | BPF_K, denied, 0, 0),
        step(BPF_RET | BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let filter = libc::sock_fprog { len: 5, filter: steps.as_mut_ptr() };
    // SAFETY: this only says that the process gets no new rights (prctl(2)).
    let promised = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: the kernel copies the five steps that the filter points to, and they live until it has.
    let filtered =
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) };
    promised == 0 && filtered == 0
}
