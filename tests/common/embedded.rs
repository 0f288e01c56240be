//! The embedded stores as tests open them: by default, and in the shapes that their settings give them.

use std::path::Path;
use std::time::Duration;

use kvfair::model::trial::Durability;
use kvfair::stores::{self, Adapter, Launch, Place, Role};

/// Settings that make another engine of a store.
const OTHERWISE: &[(&str, &str, &str)] =
    &[("berkeleydb", "env", "yes"), ("berkeleydb", "type", "btree"), ("tokyocabinet", "type", "tree")];

/// A store, and the setting in which it differs from its default.
pub struct Shape {
    pub adapter: &'static Adapter,
    setting: Option<(&'static str, &'static str)>,
}

/// Every embedded store that answers, in every shape.
pub fn shapes() -> impl Iterator<Item = Shape> {
    let chosen = |adapter: &&&Adapter| {
        adapter.server.is_none() && !matches!(adapter.role, Role::Null | Role::ReadOnly | Role::Batch)
    };
    stores::ALL.iter().filter(chosen).flat_map(|adapter| {
        let otherwise = OTHERWISE.iter().filter(|(store, ..)| *store == adapter.name);
        let settings = otherwise.map(|(_, name, value)| Some((*name, *value)));
        std::iter::once(None).chain(settings).map(|setting| Shape { adapter, setting })
    })
}

impl Shape {
    /// As a target names it.
    pub fn name(&self) -> String {
        let setting = self.setting.map_or(String::new(), |(name, value)| format!("?{name}={value}"));
        format!("{}{setting}", self.adapter.name)
    }

    pub fn launch(&self, place: &Path, level: Durability, clients: u32) -> Launch {
        let mut launch = launch(place, level, clients);
        launch.settings = self.setting.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        launch
    }
}

pub fn launch(place: &Path, durability: Durability, clients: u32) -> Launch {
    Launch { durability, clients, ..Launch::at(Place::Path(place.to_path_buf()), Duration::from_secs(10)) }
}
