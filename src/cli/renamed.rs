//! Old names of settings and warnings: they are refused, and the message names the new one.

/// Settings of a target: `memcached?mouth=binary`.
pub const SETTINGS: &[(&str, &str)] = &[("mouth", "protocol")];

/// Warnings, as `--no-warn` takes them.
pub const WARNINGS: &[(&str, &str)] = &[("void", "discarded"), ("twin", "aa-control")];

/// The new name of what was typed by its old one.
pub fn new_name(names: &[(&str, &'static str)], typed: &str) -> Option<&'static str> {
    names.iter().find(|(old, _)| *old == typed).map(|(_, new)| *new)
}
