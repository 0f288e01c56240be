//! What commands show, in every form. A command makes blocks of its report; the files below write them as text and
//! Markdown, `page` as HTML, and know nothing of what they say. CSV and JSON are for programs: they have all numbers.

use anyhow::Result;

use super::exit::Exit;
use super::grid::Grid;

pub mod csv;
pub mod json;
pub mod markdown;
pub mod text;

/// A part of what is shown, in the order of reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// What was done. It comes first.
    Headline(String),
    Table(Grid),
    /// A table that is never made to fit.
    WideTable(Grid),
    /// Sentences that belong together.
    Paragraph(String),
    /// Things to know, one by one.
    List(Vec<String>),
    /// The same, each in one line of a terminal: what does not fit is cut.
    Lines(Vec<OneLine>),
    /// The same of the table above.
    Remarks(Vec<String>),
    /// A subject, and what there is to know of it.
    Subject(String, Vec<String>),
    /// A heading, and a text for each name: all texts begin in one column.
    Named(String, Vec<(String, String)>),
    /// A line that only a terminal shows. It is not wrapped, so that a command in it can be copied.
    Aside(String),
    /// An empty line on a terminal.
    Gap,
}

/// What is shown in one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OneLine {
    pub text: String,
    /// What comes behind it where all of it fits.
    pub more: String,
}

impl OneLine {
    pub fn whole(&self) -> String {
        format!("{}{}", self.text, self.more)
    }
}

/// Where blocks are read: on a terminal of so many columns, or on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    Terminal(usize),
    Page,
}

/// A sentence, or a line that ends with a command: that one is not wrapped, so that it can be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    Sentence(String),
    Command(String),
}

impl Statement {
    pub fn words(&self) -> &str {
        match self {
            Statement::Sentence(words) | Statement::Command(words) => words,
        }
    }

    pub fn block(self) -> Block {
        match self {
            Statement::Sentence(words) => Block::Paragraph(words),
            Statement::Command(words) => Block::Aside(words),
        }
    }
}

/// A form that is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputForm {
    #[default]
    Text,
    Markdown,
    Csv,
    Json,
}

/// What a command shows of its report.
pub trait Shown {
    /// How a command ends that did no more than find this.
    fn exit(&self) -> Exit;

    fn blocks(&self, medium: Medium) -> Result<Vec<Block>>;

    /// A line of names, and a line for each row.
    fn csv(&self) -> Result<String>;

    /// One object by schema/output.schema.json. `exit` is how the command ends.
    fn json(&self, exit: Exit) -> Result<String>;

    fn markdown(&self) -> Result<String> {
        Ok(markdown::written(&self.blocks(Medium::Page)?))
    }
}

/// What is printed, with a line's end. `width` is that of text and of tables that fit.
pub fn printed(shown: &dyn Shown, exit: Exit, form: OutputForm, width: usize) -> Result<String> {
    match form {
        OutputForm::Text => Ok(text::written(&shown.blocks(Medium::Terminal(width))?, width)),
        OutputForm::Markdown => shown.markdown(),
        OutputForm::Csv => shown.csv(),
        OutputForm::Json => shown.json(exit),
    }
}
