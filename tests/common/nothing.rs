//! Input for jobs that read none.

use std::io::{self, BufRead};

use kvfair::jobs::Source;

pub struct Nothing;

impl Source for Nothing {
    fn name(&self) -> &str {
        "nothing"
    }

    fn open(&self) -> io::Result<Box<dyn BufRead>> {
        Ok(Box::new(io::empty()))
    }
}
