//! Keys that are set by one client each, so that the versions of a key have an order.

/// One client among several.
#[derive(Clone, Copy)]
pub struct Writer {
    pub index: u64,
    pub of: u64,
    pub records: u64,
}

impl Writer {
    /// The key beside this one that is the client's own: of as many neighbouring keys as there are clients each sets
    /// one. There are no fewer keys than clients.
    #[inline(always)]
    pub fn own_key(self, record: u64) -> u64 {
        let own = record - record % self.of + self.index;
        if own < self.records { own } else { own.checked_sub(self.of).unwrap_or(record) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::Part;
    use crate::keyed::questions::{Asked, Question};
    use kvfair_core::load::{At, Load};

    #[test]
    fn a_key_with_one_writer_is_set_by_one_client_and_read_by_all() {
        let load = Load { records: 1_000, reads: 1, writes: 1, one_writer: true, ..Load::default() };
        let asked = Asked::of_load(load, 1);
        let seven = At::closed(7, 400_000);
        let mut writers = vec![BTreeSet::new(); 1_000];
        let mut readers = writers.clone();
        for index in 0..7 {
            for part in [Part::Run, Part::Set] {
                let mut questions = asked.questions(part, seven, index);
                let mut copy = questions.clone();
                let drawn: Vec<Question> = (0..40_000).map(|_| questions.draw()).collect();
                for Question { record, set } in &drawn {
                    let found = if *set { &mut writers } else { &mut readers };
                    found[*record as usize].insert(index);
                }
                let mut records = drawn.iter().map(|question| question.record);
                copy.draw_records(40_000, |record| assert_eq!(Some(record), records.next()));
            }
        }
        assert!(writers.iter().all(|clients| clients.len() == 1), "all keys are set, each by one client");
        assert!(readers.iter().all(|clients| clients.len() == 7));
    }
}
