//! The stores that a default build leaves out, because their client libraries take long to build.

use super::{ALL, Adapter};

/// A store that only a build with its feature has.
pub struct Featured {
    pub name: &'static str,
    pub about: &'static str,
}

/// How to get a build that has them all.
pub const GET_THEM: &str = "install the wheel of kvfair (pip), or build: cargo build --release --features full";

const FEATURED: [Featured; 3] = [
    Featured { name: "mongodb", about: "the document database" },
    Featured { name: "ferretdb", about: "MongoDB's protocol on top of SQLite" },
    Featured { name: "cassandra", about: "the wide-column store: rows by the hash of their key" },
];

/// Those that this build does not have.
pub fn not_built() -> impl Iterator<Item = &'static Featured> {
    missing_in(ALL)
}

fn missing_in(built: &[&Adapter]) -> impl Iterator<Item = &'static Featured> {
    FEATURED.iter().filter(|featured| built.iter().all(|adapter| adapter.name != featured.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(all(feature = "mongodb", feature = "cassandra"))]
    fn a_full_build_has_each_of_them_and_calls_it_the_same() {
        for featured in &FEATURED {
            let adapter = ALL.iter().find(|adapter| adapter.name == featured.name).expect(featured.name);
            assert_eq!(adapter.about, featured.about);
        }
        assert_eq!(not_built().count(), 0);
    }

    #[test]
    fn what_a_build_lacks_is_named() {
        let default: Vec<_> = ALL.iter().copied().filter(|adapter| adapter.name != "ferretdb").collect();
        assert!(missing_in(&default).any(|featured| featured.name == "ferretdb"));
        let of_default: Vec<_> = missing_in(&[]).map(|featured| featured.name).collect();
        assert_eq!(of_default, ["mongodb", "ferretdb", "cassandra"]);
    }
}
