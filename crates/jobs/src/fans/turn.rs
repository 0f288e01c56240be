//! One profile at a time, for the ways that have one question under way: the client's part of it, prepared for merging.

use super::Share;
use crate::InputFault;
use crate::merge::Pages;
use crate::people::{Profile, Profiles};
use kvfair_core::op::KeyList;

pub struct Turn {
    share: Share,
    profiles: Profiles,
    profile: Profile,
    pub pages: Pages,
    /// Which of the pages are this client's, as indices and by their names.
    pub owned: Vec<usize>,
    pub names: KeyList,
    /// 1 if this is the client who counts the profile: the owner of its first page.
    pub counted: u64,
}

/// What came next in the input.
pub enum Next {
    Part,
    /// A profile without pages, which this client counts.
    Empty,
    End,
}

impl Turn {
    pub fn new(share: Share, profiles: Profiles) -> Turn {
        Turn {
            share,
            profiles,
            profile: Profile::default(),
            pages: Pages::default(),
            owned: Vec::new(),
            names: KeyList::default(),
            counted: 0,
        }
    }

    /// Goes on to the next profile of which something is this client's.
    pub fn next(&mut self) -> Result<Next, InputFault> {
        while self.profiles.read(&mut self.profile)? {
            let names = self.profile.pages();
            self.share.owned(names, &mut self.owned);
            if names.is_empty() && self.share.counts_empty() {
                return Ok(Next::Empty);
            }
            if self.owned.is_empty() {
                continue;
            }
            self.counted = u64::from(self.owned[0] == 0);
            self.pages.set(names);
            self.names.clear();
            self.owned.iter().for_each(|page| self.names.push(names.get(*page)));
            return Ok(Next::Part);
        }
        Ok(Next::End)
    }

    pub fn skipped(&self) -> u64 {
        self.profiles.skipped()
    }
}
