//! From CEL to checked formulas. The syntax is the `cel` crate's; here every name must be a column, every
//! operator must fit its operands. What must not enter: cells.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, SelectExpr, operators};
use cel::parser::Parser;
use whittle_sdk::Cells;

use crate::columns::{Columns, Place, Table};
use crate::typed::{Ask, Bool, Double, Int, Number, Order, Sum, Text, Typed};

/// How deep a formula may be nested; the guest's stack is small.
const DEEPEST: u16 = 40;

/// A formula that answers a bool.
pub(crate) fn boolean(source: &str, columns: &mut Columns) -> Result<Bool, String> {
    match typed(source, columns)? {
        Typed::Bool(formula) => Ok(formula),
        other @ (Typed::Int(_) | Typed::Double(_) | Typed::Text(_)) => Err(format!("answers {}, a bool is wanted", other.name())),
    }
}

/// A formula that answers money.
pub(crate) fn number(source: &str, columns: &mut Columns) -> Result<Number, String> {
    match typed(source, columns)? {
        Typed::Int(formula) => Ok(Number::Int(formula)),
        Typed::Double(formula) => Ok(Number::Double(formula)),
        other @ (Typed::Bool(_) | Typed::Text(_)) => Err(format!("answers {}, an int or a double is wanted", other.name())),
    }
}

fn typed(source: &str, columns: &mut Columns) -> Result<Typed, String> {
    let parsed = Parser::new().max_recursion_depth(DEEPEST).parse(source);
    let parsed = parsed.map_err(|errors| {
        let first = errors.errors.first();
        first.map_or_else(|| "is no CEL".to_owned(), |error| format!("is no CEL, character {}: {}", error.pos.1, error.msg))
    })?;
    check(&parsed, columns)
}

fn check(expr: &IdedExpr, columns: &mut Columns) -> Result<Typed, String> {
    match &expr.expr {
        Expr::Literal(literal) => self::literal(literal),
        Expr::Ident(name) => column(Table::Candidate, name, None, columns),
        Expr::Select(select) => selected(select, columns),
        Expr::Call(call) => self::call(call, columns),
        Expr::List(_) => Err("a list stands only behind `in`".to_owned()),
        Expr::Map(_) | Expr::Struct(_) => Err("maps and messages are not supported".to_owned()),
        Expr::Comprehension(_) => Err("macros over lists are not supported".to_owned()),
        Expr::Unspecified => Err("is empty".to_owned()),
    }
}

fn literal(literal: &LiteralValue) -> Result<Typed, String> {
    match literal {
        LiteralValue::Boolean(value) => Ok(Typed::Bool(Bool::Literal(*value.inner()))),
        LiteralValue::Int(value) => Ok(Typed::Int(Int::Literal(*value.inner()))),
        LiteralValue::Double(value) => Ok(Typed::Double(Double::Literal(*value.inner()))),
        LiteralValue::String(value) => Ok(Typed::Text(Text::Literal(value.inner().to_owned()))),
        LiteralValue::UInt(_) | LiteralValue::Bytes(_) | LiteralValue::Null => {
            Err("unsigned numbers, bytes and null are not supported".to_owned())
        }
    }
}

/// `asker.namespace`, `round.pending_pods`.
fn selected(select: &SelectExpr, columns: &mut Columns) -> Result<Typed, String> {
    let table = table(&select.operand).filter(|_| !select.test);
    let table = table.ok_or_else(|| format!("`.{}`: only `asker` and `round` have fields", select.field))?;
    column(table, &select.field, None, columns)
}

fn table(expr: &IdedExpr) -> Option<Table> {
    match &expr.expr {
        Expr::Ident(name) if name == "asker" => Some(Table::Asker),
        Expr::Ident(name) if name == "round" => Some(Table::Round),
        Expr::Ident(_) | Expr::Unspecified | Expr::Call(_) | Expr::Comprehension(_) | Expr::List(_) => None,
        Expr::Literal(_) | Expr::Map(_) | Expr::Select(_) | Expr::Struct(_) => None,
    }
}

fn column(table: Table, name: &str, key: Option<&str>, columns: &mut Columns) -> Result<Typed, String> {
    let Some((place, cells)) = columns.mention(table, name, key) else {
        return Err(unknown(table, name, key));
    };
    Ok(of_cells(place, cells))
}

fn of_cells(place: Place, cells: Cells) -> Typed {
    match cells {
        Cells::Int | Cells::Row => Typed::Int(Int::Column(place)),
        Cells::Bool => Typed::Bool(Bool::Column(place)),
        Cells::Word => Typed::Text(Text::Column(place)),
    }
}

fn unknown(table: Table, name: &str, key: Option<&str>) -> String {
    let prefix = match table {
        Table::Candidate => "",
        Table::Asker => "asker.",
        Table::Round => "round.",
    };
    if key.is_some() {
        return format!("there is no column {prefix}{name}[...]");
    }
    let near = table.names().into_iter().map(|other| (strsim::damerau_levenshtein(&other, name), other)).min();
    let hint = near.filter(|(steps, _)| *steps <= 3).map(|(_, other)| format!("; is {prefix}{other} meant?")).unwrap_or_default();
    format!("there is no column {prefix}{name}{hint}")
}

fn call(call: &CallExpr, columns: &mut Columns) -> Result<Typed, String> {
    let name = call.func_name.as_str();
    if let Some(target) = &call.target {
        return asked(name, target, &call.args, columns);
    }
    match (name, &call.args[..]) {
        (operators::INDEX, [of, key]) => indexed(of, key, columns),
        (operators::CONDITIONAL, [when, yes, no]) => conditional(when, yes, no, columns),
        (operators::IN, [value, list]) => contained(value, list, columns),
        (_, [one]) => unary(name, check(one, columns)?),
        (_, [left, right]) => binary(name, check(left, columns)?, check(right, columns)?),
        _ => Err(format!("`{name}` is not supported")),
    }
}

/// `label['team']`, `asker.annotation['key']`.
fn indexed(of: &IdedExpr, key: &IdedExpr, columns: &mut Columns) -> Result<Typed, String> {
    let Expr::Literal(LiteralValue::String(key)) = &key.expr else { return Err("a key in [] is a text, such as label['team']".to_owned()) };
    let key = key.inner().to_owned();
    if let Expr::Ident(name) = &of.expr {
        return column(Table::Candidate, name, Some(&key), columns);
    }
    if let Expr::Select(select) = &of.expr
        && let Some(table) = table(&select.operand)
    {
        return column(table, &select.field, Some(&key), columns);
    }
    Err("only columns such as label, asker.annotation or round.signal have keys".to_owned())
}

fn asked(name: &str, target: &IdedExpr, args: &[IdedExpr], columns: &mut Columns) -> Result<Typed, String> {
    let ask = match name {
        "contains" => Ask::Contains,
        "startsWith" => Ask::StartsWith,
        "endsWith" => Ask::EndsWith,
        _ => return Err(format!("function `{name}` is not supported; contains, startsWith, endsWith, int and double are")),
    };
    let [part] = args else { return Err(format!("{name} takes one text")) };
    match (check(target, columns)?, check(part, columns)?) {
        (Typed::Text(text), Typed::Text(part)) => Ok(Typed::Bool(Bool::Ask(ask, text, part))),
        (target, part) => Err(format!("{}.{name}({}): both are texts", target.name(), part.name())),
    }
}

fn conditional(when: &IdedExpr, yes: &IdedExpr, no: &IdedExpr, columns: &mut Columns) -> Result<Typed, String> {
    let when = match check(when, columns)? {
        Typed::Bool(when) => Box::new(when),
        other @ (Typed::Int(_) | Typed::Double(_) | Typed::Text(_)) => {
            return Err(format!("the condition before `?` is a bool, not {}", other.name()));
        }
    };
    match (check(yes, columns)?, check(no, columns)?) {
        (Typed::Bool(yes), Typed::Bool(no)) => Ok(Typed::Bool(Bool::If(when, Box::new(yes), Box::new(no)))),
        (Typed::Int(yes), Typed::Int(no)) => Ok(Typed::Int(Int::If(when, Box::new(yes), Box::new(no)))),
        (Typed::Double(yes), Typed::Double(no)) => Ok(Typed::Double(Double::If(when, Box::new(yes), Box::new(no)))),
        (Typed::Text(yes), Typed::Text(no)) => Ok(Typed::Text(Text::If(when, Box::new(yes), Box::new(no)))),
        (yes, no) => Err(format!("both sides of `:` have the same type, not {} and {}", yes.name(), no.name())),
    }
}

fn contained(value: &IdedExpr, list: &IdedExpr, columns: &mut Columns) -> Result<Typed, String> {
    let Expr::List(list) = &list.expr else { return Err("behind `in` stands a list such as ['a', 'b']".to_owned()) };
    let value = check(value, columns)?;
    let items = list.elements.iter().map(|item| check(item, columns)).collect::<Result<Vec<_>, _>>()?;
    let wrong = |name: &str| format!("a list behind `in` is of the same type, {name}");
    match value {
        Typed::Int(value) => {
            let item = |item| if let Typed::Int(item) = item { Ok(item) } else { Err(wrong("int")) };
            Ok(Typed::Bool(Bool::IntIn(value, items.into_iter().map(item).collect::<Result<_, _>>()?)))
        }
        Typed::Text(value) => {
            let item = |item| if let Typed::Text(item) = item { Ok(item) } else { Err(wrong("string")) };
            Ok(Typed::Bool(Bool::TextIn(value, items.into_iter().map(item).collect::<Result<_, _>>()?)))
        }
        Typed::Bool(_) | Typed::Double(_) => Err("`in` is for int and string".to_owned()),
    }
}

fn unary(name: &str, value: Typed) -> Result<Typed, String> {
    match (name, value) {
        (operators::LOGICAL_NOT, Typed::Bool(value)) => Ok(Typed::Bool(Bool::Not(Box::new(value)))),
        (operators::NEGATE, Typed::Int(value)) => Ok(Typed::Int(Int::Negative(Box::new(value)))),
        (operators::NEGATE, Typed::Double(value)) => Ok(Typed::Double(Double::Negative(Box::new(value)))),
        ("double", Typed::Int(value)) => Ok(Typed::Double(Double::Of(Box::new(value)))),
        ("int", Typed::Double(value)) => Ok(Typed::Int(Int::Of(Box::new(value)))),
        ("double", value @ Typed::Double(_)) | ("int", value @ Typed::Int(_)) => Ok(value),
        (name, value) => Err(format!("`{}` does not take {}", shown(name), value.name())),
    }
}

fn binary(name: &str, left: Typed, right: Typed) -> Result<Typed, String> {
    let fits = match (&left, &right) {
        (Typed::Bool(_), Typed::Bool(_)) | (Typed::Int(_), Typed::Int(_)) | (Typed::Double(_), Typed::Double(_)) => true,
        (Typed::Text(_), Typed::Text(_)) => true,
        (Typed::Bool(_) | Typed::Int(_) | Typed::Double(_) | Typed::Text(_), _) => false,
    };
    let refused = format!("`{}` does not take {} and {}", shown(name), left.name(), right.name());
    if !fits {
        let mixed = matches!((&left, &right), (Typed::Int(_), Typed::Double(_)) | (Typed::Double(_), Typed::Int(_)));
        return Err(refused + if mixed { "; write double(...) around the int" } else { "" });
    }
    match (name, left, right) {
        (operators::LOGICAL_AND, Typed::Bool(left), Typed::Bool(right)) => Ok(Typed::Bool(Bool::And(Box::new(left), Box::new(right)))),
        (operators::LOGICAL_OR, Typed::Bool(left), Typed::Bool(right)) => Ok(Typed::Bool(Bool::Or(Box::new(left), Box::new(right)))),
        (name, left, right) => compared(name, left, right).ok_or(refused),
    }
}

/// Comparisons and sums of two of the same type.
fn compared(name: &str, left: Typed, right: Typed) -> Option<Typed> {
    let (order, sum) = (order(name), sum(name));
    match (left, right) {
        (Typed::Bool(left), Typed::Bool(right)) => {
            let order = order.filter(|order| matches!(order, Order::Equal | Order::NotEqual))?;
            Some(Typed::Bool(Bool::Bools(order, Box::new(left), Box::new(right))))
        }
        (Typed::Int(left), Typed::Int(right)) => match sum {
            Some(sum) => Some(Typed::Int(Int::Sum(sum, Box::new(left), Box::new(right)))),
            None => Some(Typed::Bool(Bool::Ints(order?, left, right))),
        },
        (Typed::Double(left), Typed::Double(right)) => match sum {
            Some(Sum::Modulo) => None,
            Some(sum) => Some(Typed::Double(Double::Sum(sum, Box::new(left), Box::new(right)))),
            None => Some(Typed::Bool(Bool::Doubles(order?, left, right))),
        },
        (Typed::Text(left), Typed::Text(right)) => Some(Typed::Bool(Bool::Texts(order?, left, right))),
        (Typed::Bool(_) | Typed::Int(_) | Typed::Double(_) | Typed::Text(_), _) => None,
    }
}

fn order(name: &str) -> Option<Order> {
    Some(match name {
        operators::EQUALS => Order::Equal,
        operators::NOT_EQUALS => Order::NotEqual,
        operators::LESS => Order::Less,
        operators::LESS_EQUALS => Order::LessEqual,
        operators::GREATER => Order::Greater,
        operators::GREATER_EQUALS => Order::GreaterEqual,
        _ => return None,
    })
}

fn sum(name: &str) -> Option<Sum> {
    Some(match name {
        operators::ADD => Sum::Add,
        operators::SUBSTRACT => Sum::Subtract,
        operators::MULTIPLY => Sum::Multiply,
        operators::DIVIDE => Sum::Divide,
        operators::MODULO => Sum::Modulo,
        _ => return None,
    })
}

/// An operator as it is written.
fn shown(name: &str) -> &str {
    name.trim_matches('_')
}
