//! Records by their keys and in the order of their last use. It must not know what they hold.
//!
//! Records lie one after the other in memory, the list through them is of their places, and the table of places is
//! asked with the hash that the caller has computed once for each op.

use std::ops::Deref;

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

/// No place.
const NONE: u32 = u32::MAX;

/// A key and its hash.
#[derive(Clone, Copy)]
pub struct HashedKey<'k> {
    bytes: &'k [u8],
    hash: u64,
}

impl<'k> HashedKey<'k> {
    pub fn of(bytes: &'k [u8]) -> HashedKey<'k> {
        HashedKey { bytes, hash: xxh3_64(bytes) }
    }

    /// Which of so many parts has it: a power of two.
    pub fn part(self, parts: usize) -> usize {
        self.hash as usize & (parts - 1)
    }
}

impl Deref for HashedKey<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

/// The lowest bits have chosen the part, so that all keys of a part have the same: others come first in its table.
fn in_table(hash: u64) -> u64 {
    hash.rotate_right(32)
}

pub struct Recent<T> {
    places: HashTable<u32>,
    nodes: Vec<Node<T>>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
}

struct Node<T> {
    key: Box<[u8]>,
    hash: u64,
    /// Nothing where the place is free.
    held: Option<T>,
    older: u32,
    newer: u32,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Recent { places: HashTable::new(), nodes: Vec::new(), free: Vec::new(), newest: NONE, oldest: NONE }
    }
}

impl<T> Recent<T> {
    pub fn len(&self) -> usize {
        self.places.len()
    }

    #[inline]
    fn find(&self, key: HashedKey<'_>) -> Option<u32> {
        let is = |place: &u32| *self.nodes[*place as usize].key == *key.bytes;
        self.places.find(in_table(key.hash), is).copied()
    }

    /// What a key has, which becomes the most recently used one.
    #[inline]
    pub fn get_mut(&mut self, key: HashedKey<'_>) -> Option<&mut T> {
        let place = self.find(key)?;
        self.promote(place);
        self.nodes[place as usize].held.as_mut()
    }

    /// The same without using it.
    pub fn peek(&self, key: HashedKey<'_>) -> Option<&T> {
        self.nodes[self.find(key)? as usize].held.as_ref()
    }

    /// Takes what is not there yet, as the most recently used one.
    pub fn insert(&mut self, key: HashedKey<'_>, held: T) {
        let node = Node { key: key.bytes.into(), hash: key.hash, held: Some(held), older: NONE, newer: NONE };
        let place = match self.free.pop() {
            Some(place) => {
                self.nodes[place as usize] = node;
                place
            }
            None => {
                self.nodes.push(node);
                u32::try_from(self.nodes.len() - 1).expect("a cache holds fewer than 4,000 million records")
            }
        };
        let nodes = &self.nodes;
        self.places.insert_unique(in_table(key.hash), place, |place| in_table(nodes[*place as usize].hash));
        self.push(place);
    }

    pub fn remove(&mut self, key: HashedKey<'_>) -> Option<T> {
        let place = self.find(key)?;
        self.take(place)
    }

    /// The one that was used least recently.
    pub fn oldest(&self) -> Option<(HashedKey<'_>, &T)> {
        let node = self.nodes.get(self.oldest as usize)?;
        Some((HashedKey { bytes: &node.key, hash: node.hash }, node.held.as_ref()?))
    }

    pub fn remove_oldest(&mut self) -> Option<T> {
        if self.oldest == NONE { None } else { self.take(self.oldest) }
    }

    /// All of them as they lie in memory.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&[u8], &mut T)> {
        self.nodes.iter_mut().filter_map(|node| Some((&*node.key, node.held.as_mut()?)))
    }

    /// Removes those that `is` says yes to; it hears of all.
    pub fn remove_if(&mut self, mut is: impl FnMut(&[u8], &T) -> bool) {
        for place in 0..self.nodes.len() {
            let node = &self.nodes[place];
            if node.held.as_ref().is_some_and(|held| is(&node.key, held)) {
                self.take(place as u32);
            }
        }
    }

    fn take(&mut self, place: u32) -> Option<T> {
        self.unlink(place);
        let node = &mut self.nodes[place as usize];
        let (hash, held) = (node.hash, node.held.take());
        node.key = Box::default();
        if let Ok(entry) = self.places.find_entry(in_table(hash), |other| *other == place) {
            entry.remove();
        }
        self.free.push(place);
        held
    }

    fn promote(&mut self, place: u32) {
        if place != self.newest {
            self.unlink(place);
            self.push(place);
        }
    }

    /// Makes it the newest of the list.
    fn push(&mut self, place: u32) {
        let before = std::mem::replace(&mut self.newest, place);
        let node = &mut self.nodes[place as usize];
        (node.older, node.newer) = (before, NONE);
        match self.nodes.get_mut(before as usize) {
            Some(older) => older.newer = place,
            None => self.oldest = place,
        }
    }

    fn unlink(&mut self, place: u32) {
        let (older, newer) = (self.nodes[place as usize].older, self.nodes[place as usize].newer);
        match self.nodes.get_mut(older as usize) {
            Some(node) => node.newer = newer,
            None => self.oldest = newer,
        }
        match self.nodes.get_mut(newer as usize) {
            Some(node) => node.older = older,
            None => self.newest = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    struct Random(u64);

    impl Random {
        fn draw(&mut self) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            self.0 >> 33
        }
    }

    /// Against a list that is searched from its beginning.
    #[test]
    fn records_go_in_the_order_of_their_last_use() {
        let (mut recent, mut list) = (Recent::default(), VecDeque::<(Vec<u8>, u64)>::new());
        let mut random = Random(5);
        for step in 0..20_000 {
            let name = (random.draw() % 50).to_string().into_bytes();
            let (key, at) = (HashedKey::of(&name), list.iter().position(|(other, _)| *other == name));
            match (random.draw() % 8, at) {
                (0, _) => {
                    let oldest = recent.oldest().map(|(key, held)| (key.to_vec(), *held));
                    assert_eq!(oldest, list.back().cloned(), "{step}");
                    assert_eq!(recent.remove_oldest(), list.pop_back().map(|(_, held)| held), "{step}");
                }
                (1, _) => assert_eq!(recent.remove(key), at.and_then(|at| list.remove(at)).map(|(_, held)| held)),
                (2, _) => assert_eq!(recent.peek(key), at.map(|at| &list[at].1)),
                (3, _) if step % 40 == 0 => {
                    recent.remove_if(|_, held| held % 3 == 0);
                    list.retain(|(_, held)| held % 3 != 0);
                }
                (_, Some(at)) => {
                    let used = list.remove(at).expect("it is there");
                    assert_eq!(recent.get_mut(key), Some(&mut used.1.clone()), "{step}");
                    list.push_front(used);
                }
                (_, None) => {
                    recent.insert(key, step);
                    list.push_front((name, step));
                }
            }
            assert_eq!(recent.len(), list.len());
        }
        let mut all: Vec<_> = recent.iter_mut().map(|(key, held)| (key.to_vec(), *held)).collect();
        all.sort();
        let mut expected: Vec<_> = list.into_iter().collect();
        expected.sort();
        assert_eq!(all, expected);
        assert!(recent.nodes.len() <= 50, "places are used again");
    }
}
