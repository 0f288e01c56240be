//! What differs between the set-ups of two runs of the same job.

use super::{PageRun, PageTarget};
use kvfair_core::units;

/// A line for each: "kernel: Linux 6.1, here Linux 6.5".
pub fn all(first: &PageRun, here: &PageRun) -> Vec<String> {
    let (one, other) = (&first.machine, &here.machine);
    let mut found = Vec::new();
    let mut told = |what: &str, then: String, now: String| {
        if then != now {
            found.push(format!("{what}: {}, here {}", named(&then), named(&now)));
        }
    };
    told("processor", one.cpu.clone(), other.cpu.clone());
    told("processors", one.cpus.to_string(), other.cpus.to_string());
    told("memory", units::bytes(one.memory_bytes), units::bytes(other.memory_bytes));
    told("system", one.os.clone(), other.os.clone());
    told("kernel", one.kernel.clone(), other.kernel.clone());
    told("filesystem", one.filesystem.clone(), other.filesystem.clone());
    told("kvfair", first.kvfair.clone(), here.kvfair.clone());
    told("debug build of kvfair", first.debug_build.to_string(), here.debug_build.to_string());
    told("SHA-256 of the data", first.data.sha256.clone(), here.data.sha256.clone());
    told("seed of the order", first.seeds.order.to_string(), here.seeds.order.to_string());
    let mut seen: Vec<&str> = Vec::new();
    for target in &first.targets {
        let name = target.target.as_str();
        if seen.contains(&name) {
            continue;
        }
        seen.push(name);
        match here.targets.iter().find(|other| other.target == name) {
            None => found.push(format!("{name}: did not run here")),
            Some(other) if versions(target) != versions(other) => {
                found.push(format!("{name}: {}, here {}", versions(target), versions(other)));
            }
            Some(_) => {}
        }
    }
    found
}

fn versions(target: &PageTarget) -> String {
    format!("version {} by {}", named(&target.version), named(&target.client_library))
}

fn named(text: &str) -> &str {
    if text.is_empty() { "unknown" } else { text }
}
