//! Several servers that are one store: each is started and checked by itself, in a directory of its own, and then they
//! are made one.

use std::fs;

use super::{Served, Site, Starter, Unserved};
use crate::stores::{ClusterRecipe, Launch};

impl Starter<'_> {
    pub(super) fn cluster(
        &self,
        recipe: &ClusterRecipe,
        nodes: u32,
        launch: &Launch,
        site: Site<'_>,
    ) -> Result<Served, Unserved> {
        if nodes == 0 {
            return Err(Unserved::Missing("it is reached by URL only".to_string()));
        }
        let mut all = Vec::new();
        for number in 1..=nodes {
            let name = format!("node-{number}");
            let (data, scratch) = (site.data.join(&name), site.scratch.join(&name));
            let made = fs::create_dir_all(&data).and_then(|()| fs::create_dir_all(&scratch));
            made.map_err(|error| Unserved::Failed(format!("cannot make {}: {error}", data.display())))?;
            all.push(self.one(launch, Site { data: &data, scratch: &scratch, ..site })?);
        }
        let mut first = all.remove(0);
        first.peers = all;
        let launch = first.reached(launch);
        // It is asked once, so that it may take as long as all attempts to reach a server.
        let joined = (recipe.join)(&Launch { patience: self.limit, ..launch.clone() });
        joined
            .map_err(|fault| Unserved::Failed(format!("the {nodes} servers could not be made one store: {fault}")))?;
        // Each node says that the store works once it has heard of all others.
        first.ask_until_it_answers(&|| (self.adapter.open)(&launch), self.limit, self.interrupt)?;
        Ok(first)
    }
}
