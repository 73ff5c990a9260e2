//! The program `weigh`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    weigh_cli::main(std::env::args_os())
}
