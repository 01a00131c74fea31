//! A parsed template: nodes that borrow from its text, with their places in it.

mod constant;
mod display;

use std::rc::Rc;

pub use constant::{Number, unquote};

use crate::function::Function;

/// A template: a file, or the body of a `define` or `block`.
#[derive(Debug)]
pub struct Tree<'a> {
    /// Index of the file that contains it.
    pub file: usize,
    /// Its content.
    pub nodes: Vec<Node<'a>>,
}

/// A part of a template.
#[derive(Debug)]
pub enum Node<'a> {
    /// Text as it is.
    Text(&'a str),
    /// Prints a value, or declares or assigns a variable.
    Action(Pipeline<'a>),
    /// `if`, `else if`, `else`.
    If(Choice<'a>),
    /// `with`, `else with`, `else`.
    With(Choice<'a>),
    /// `range`.
    Range(Loop<'a>),
    /// `template`, and the place of a `block`.
    Template(Call<'a>),
    /// Leaves the innermost loop.
    Break,
    /// Continues with the next iteration.
    Continue,
}

/// The first branch whose condition is true, else `otherwise`.
#[derive(Debug)]
pub struct Choice<'a> {
    /// Conditions and their blocks.
    pub branches: Vec<(Pipeline<'a>, Vec<Node<'a>>)>,
    /// The block of the last `else`.
    pub otherwise: Vec<Node<'a>>,
}

/// `range`
#[derive(Debug)]
pub struct Loop<'a> {
    /// What it runs over.
    pub over: Pipeline<'a>,
    /// The block that is executed for each element.
    pub body: Vec<Node<'a>>,
    /// The block that is executed where there are no elements.
    pub otherwise: Vec<Node<'a>>,
}

/// `template "name" data`
#[derive(Debug)]
pub struct Call<'a> {
    /// Its first byte.
    pub at: usize,
    /// The template.
    pub name: String,
    /// Its dot.
    pub data: Option<Pipeline<'a>>,
}

/// Commands, each with the result of the one before as its last argument.
#[derive(Debug)]
pub struct Pipeline<'a> {
    /// Its first byte.
    pub at: usize,
    /// The variables that get the result.
    pub variables: Vec<&'a str>,
    /// Whether the variables exist already (`=`, not `:=`).
    pub assigns: bool,
    /// The commands; at least one.
    pub commands: Vec<Command<'a>>,
}

/// An operand, and arguments where it is a function or a method.
#[derive(Debug)]
pub struct Command<'a> {
    /// What is called, or the value.
    pub first: Operand<'a>,
    /// The arguments.
    pub arguments: Vec<Operand<'a>>,
}

/// A part of a command.
#[derive(Debug)]
pub struct Operand<'a> {
    /// Its first byte; of a chain of fields the last dot, as Go counts.
    pub at: usize,
    /// What it is.
    pub term: Term<'a>,
}

/// What an operand is.
#[derive(Debug)]
pub enum Term<'a> {
    /// A function, and the name it is called by.
    Function(&'a str, &'a Function<'a>),
    /// `.a.b`
    Field(Vec<&'a str>),
    /// `$x.a.b`
    Variable(&'a str, Vec<&'a str>),
    /// `.`
    Dot,
    /// `nil`
    Nil,
    /// `true`
    Bool(bool),
    /// A number.
    Number(Number<'a>),
    /// A text, and how it is written.
    Text(Rc<str>, &'a str),
    /// A pipeline in parentheses.
    Pipeline(Box<Pipeline<'a>>),
    /// A function or a pipeline in parentheses, and fields of it.
    Chain(Box<Operand<'a>>, Vec<&'a str>),
}
