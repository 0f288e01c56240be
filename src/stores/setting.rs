//! Settings of stores as data: what a target may set, which values there are, and what another value costs.

/// A setting of a store that a target may name.
pub struct Setting {
    pub name: &'static str,
    pub about: &'static str,
    pub default: &'static str,
    pub values: SettingValues,
    pub price: Price,
}

/// The values that a setting takes.
pub enum SettingValues {
    /// These, each of which may be worth trying.
    OneOf(&'static [&'static str]),
    /// All that pass the check, and some of them that may be worth trying.
    Checked { check: fn(&str) -> Result<(), String>, worth_trying: &'static [&'static str] },
}

/// What another value costs besides time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Price {
    Nothing,
    /// In a few words: "memory".
    Pays(&'static str),
    /// Another value changes what survives a crash. It is compared with no other value as if that were free.
    Durability,
}

impl Setting {
    /// Whether it takes this value, or which it takes.
    pub fn check(&self, value: &str) -> Result<(), String> {
        match self.values {
            SettingValues::OneOf(values) if values.contains(&value) => Ok(()),
            SettingValues::OneOf(values) => Err(any_of(values)),
            SettingValues::Checked { check, .. } => check(value),
        }
    }

    /// The values that may be worth trying, its default among them where that is one of a list.
    pub fn worth_trying(&self) -> &'static [&'static str] {
        match self.values {
            SettingValues::OneOf(values) => values,
            SettingValues::Checked { worth_trying, .. } => worth_trying,
        }
    }
}

/// A number of threads.
pub fn check_threads(value: &str) -> Result<(), String> {
    let is_one = value.parse::<u32>().is_ok_and(|threads| (1..=THREADS_MAX).contains(&threads));
    if is_one { Ok(()) } else { Err(format!("a number of threads from 1 to {THREADS_MAX}")) }
}

/// memcached warns above it, and Redis takes no more than twice as many.
const THREADS_MAX: u32 = 64;

/// "always, everysec or no".
fn any_of(values: &[&str]) -> String {
    match values.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        _ => values.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ALL;
    use super::*;

    #[test]
    fn lists_are_told_in_words() {
        assert_eq!(any_of(&["always", "everysec", "no"]), "always, everysec or no");
        assert_eq!(any_of(&["yes", "no"]), "yes or no");
        assert_eq!(any_of(&["yes"]), "yes");
    }

    #[test]
    fn every_setting_takes_its_default_and_what_is_worth_trying() {
        for setting in ALL.iter().flat_map(|adapter| adapter.settings) {
            let named = [setting.default].into_iter().filter(|default| !default.is_empty());
            for value in named.chain(setting.worth_trying().iter().copied()) {
                assert_eq!(setting.check(value), Ok(()), "{}={value}", setting.name);
            }
        }
    }
}
