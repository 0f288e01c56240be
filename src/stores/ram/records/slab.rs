//! Numbered slots for what is too large for a record of the table.

/// Things in numbered slots, those that are free used again.
pub struct Slab<T> {
    slots: Vec<T>,
    free: Vec<usize>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T: Default> Slab<T> {
    #[inline]
    pub fn get(&self, slot: usize) -> &T {
        &self.slots[slot]
    }

    #[inline]
    pub fn get_mut(&mut self, slot: usize) -> &mut T {
        &mut self.slots[slot]
    }

    pub fn put(&mut self, thing: T) -> usize {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot] = thing;
                slot
            }
            None => {
                self.slots.push(thing);
                self.slots.len() - 1
            }
        }
    }

    pub fn take(&mut self, slot: usize) -> T {
        self.free.push(slot);
        std::mem::take(&mut self.slots[slot])
    }

    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_slots_are_used_again() {
        let mut slab = Slab::default();
        let (first, second) = (slab.put(vec![1]), slab.put(vec![2]));
        assert_eq!(slab.take(first), [1]);
        assert_eq!(slab.put(vec![3]), first);
        assert_eq!((slab.get(first).as_slice(), slab.get(second).as_slice()), ([3].as_slice(), [2].as_slice()));
    }
}
