//! What needs neither servers nor a quiet machine: codecs, input, embedded stores, rules, documents.

mod common;

mod allocations;
mod cached;
mod circles;
mod contract;
mod documents;
mod fans;
mod input;
mod merge;
mod prose;
mod recipes;
mod sockets;
mod tidy;
mod wire;
mod words;

// What the store of CONTRIBUTING.md imports from where it would stand.
use kvfair::model;
