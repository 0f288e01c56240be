//! The same done with many things by all processors at once.

use std::num::NonZeroUsize;
use std::thread;

/// What `each` makes of every item, in their order. Where it is not worth starting threads for, one after another.
pub fn map<T: Sync, R: Send>(items: &[T], is_worth_it: bool, each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = if is_worth_it { thread::available_parallelism().map_or(1, NonZeroUsize::get) } else { 1 };
    let mut parts = items.chunks(items.len().div_ceil(threads).max(1));
    let first = parts.next().unwrap_or_default();
    thread::scope(|scope| {
        let each = &each;
        let others: Vec<_> = parts.map(|part| scope.spawn(move || part.iter().map(each).collect::<Vec<R>>())).collect();
        let mut made: Vec<R> = first.iter().map(each).collect();
        others.into_iter().for_each(|other| made.extend(other.join().expect("nothing here panics")));
        made
    })
}

/// What two things make, side by side.
pub fn both<A: Send, B>(is_worth_it: bool, one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> (A, B) {
    if !is_worth_it {
        return (one(), other());
    }
    thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        (one.join().expect("nothing here panics"), other)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_made() {
        assert_eq!(both(false, || 1, || "two"), (1, "two"));
        assert_eq!(both(true, || 1, || "two"), (1, "two"));
    }

    #[test]
    fn everything_is_done_once_and_in_order() {
        for count in [0, 1, 2, 3, 7, 1_000] {
            let items: Vec<usize> = (0..count).collect();
            let expected: Vec<usize> = items.iter().map(|item| item * 2).collect();
            for is_worth_it in [false, true] {
                assert_eq!(map(&items, is_worth_it, |item| item * 2), expected);
            }
        }
    }
}
