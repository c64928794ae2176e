//! Formulas after they were checked: every node knows the type of its value, so nothing is left to fail
//! at run time but arithmetic. What must not enter: CEL's syntax.

use crate::columns::Place;

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// An operator of arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sum {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

/// What a text is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    Contains,
    StartsWith,
    EndsWith,
}

/// An integer.
#[derive(Debug, Clone)]
pub(crate) enum Int {
    Literal(i64),
    Column(Place),
    Negative(Box<Int>),
    Sum(Sum, Box<Int>, Box<Int>),
    Of(Box<Double>),
    If(Box<Bool>, Box<Int>, Box<Int>),
}

/// A double.
#[derive(Debug, Clone)]
pub(crate) enum Double {
    Literal(f64),
    Negative(Box<Double>),
    Sum(Sum, Box<Double>, Box<Double>),
    Of(Box<Int>),
    If(Box<Bool>, Box<Double>, Box<Double>),
}

/// A text.
#[derive(Debug, Clone)]
pub(crate) enum Text {
    Literal(String),
    Column(Place),
    If(Box<Bool>, Box<Text>, Box<Text>),
}

/// A bool.
#[derive(Debug, Clone)]
pub(crate) enum Bool {
    Literal(bool),
    Column(Place),
    Not(Box<Bool>),
    And(Box<Bool>, Box<Bool>),
    Or(Box<Bool>, Box<Bool>),
    If(Box<Bool>, Box<Bool>, Box<Bool>),
    Bools(Order, Box<Bool>, Box<Bool>),
    Ints(Order, Int, Int),
    Doubles(Order, Double, Double),
    Texts(Order, Text, Text),
    IntIn(Int, Vec<Int>),
    TextIn(Text, Vec<Text>),
    Ask(Ask, Text, Text),
}

/// A formula that answers money.
#[derive(Debug, Clone)]
pub(crate) enum Number {
    Int(Int),
    Double(Double),
}

/// A formula of any type.
#[derive(Debug, Clone)]
pub(crate) enum Typed {
    Bool(Bool),
    Int(Int),
    Double(Double),
    Text(Text),
}

impl Typed {
    /// The name of its type in CEL.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
        }
    }
}
