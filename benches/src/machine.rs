//! What the figures were measured on.

use std::fs;
use std::process::Command;
use std::thread;

/// Prints the date, the processor and how busy the machine is.
pub(crate) fn describe() {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let date = date().unwrap_or_else(|| "date unknown".into());
    let processor = processor().unwrap_or_else(|| "processor unknown".into());
    println!("{date}; {processor}; {cores} cores");
    let Some(load) = load() else {
        println!("load unknown");
        return;
    };
    println!("load average over the last minute: {load:.2}");
    let busy = f64::from(u32::try_from(cores).unwrap_or(u32::MAX)) / 4.0;
    if load > busy {
        println!("warning: the machine is busy; expect times to be too long and to scatter");
    }
}

fn date() -> Option<String> {
    let output = Command::new("date").args(["-u", "+%Y-%m-%d"]).output();
    let date = String::from_utf8(output.ok()?.stdout).ok()?;
    Some(date.trim().to_owned()).filter(|date| !date.is_empty())
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    let (_, name) = line.split_once(':')?;
    Some(name.trim().to_owned())
}

fn load() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
