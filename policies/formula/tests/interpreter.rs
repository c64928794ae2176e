//! What a formula answers is what the interpreter of the `cel` crate answers for the same text.

use cel::{Context, Program, Value};
use proptest::prelude::*;
use whittle_policy_formula::Formula;
use whittle_sdk::prelude::*;

use CandidateColumn as C;

/// Texts of formulas with an int, a bool, a double or a string as value.
#[derive(Debug, Clone)]
struct Texts {
    int: String,
    truth: String,
    double: String,
    text: String,
}

fn leaf() -> impl Strategy<Value = Texts> {
    let int = prop_oneof![
        Just("gpus".to_owned()),
        Just("cpu_milli".to_owned()),
        Just("9223372036854775807".to_owned()),
        (0..5i64).prop_map(|n| n.to_string())
    ];
    let truth = prop_oneof![Just("burstable".to_owned()), Just("flex".to_owned()), Just("true".to_owned()), Just("false".to_owned())];
    let double = prop_oneof![Just("0.0".to_owned()), Just("1.5".to_owned()), Just("double(gpus)".to_owned()), Just("1e10".to_owned())];
    let text = prop_oneof![Just("zone".to_owned()), Just("family".to_owned()), Just("'us'".to_owned()), Just("''".to_owned())];
    (int, truth, double, text).prop_map(|(int, truth, double, text)| Texts { int, truth, double, text })
}

fn formulas() -> impl Strategy<Value = Texts> {
    leaf().prop_recursive(4, 40, 3, |inner| {
        let sum = prop::sample::select(vec!["+", "-", "*", "/", "%"]);
        let order = prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">="]);
        (inner.clone(), inner.clone(), inner, sum, order, 0..6usize).prop_map(|(a, b, c, sum, order, which)| {
            let float = if sum == "%" { "+" } else { sum };
            Texts {
                int: match which {
                    0 => format!("(-{})", a.int),
                    1 => format!("int({})", a.double),
                    2 => format!("({} ? {} : {})", a.truth, b.int, c.int),
                    _ => format!("({} {sum} {})", a.int, b.int),
                },
                double: match which {
                    0 => format!("(-{})", a.double),
                    1 => format!("double({})", a.int),
                    2 => format!("({} ? {} : {})", a.truth, b.double, c.double),
                    _ => format!("({} {float} {})", a.double, b.double),
                },
                text: if which < 2 { format!("({} ? {} : {})", a.truth, b.text, c.text) } else { a.text.clone() },
                truth: match which {
                    0 => format!("({} {order} {})", a.int, b.int),
                    1 => format!("({} && {})", a.truth, b.truth),
                    2 => format!("({} || {})", a.truth, b.truth),
                    3 => format!("({} {order} {} || !{} || {} in [{}, {}])", a.text, b.text, c.truth, a.int, b.int, c.int),
                    4 => format!("({} {order} {})", a.double, b.double),
                    _ => format!(
                        "({}.startsWith({}) || {}.contains({}) || {} in [{}, {}])",
                        a.text, b.text, b.text, c.text, a.text, b.text, c.text
                    ),
                },
            }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn answers_are_the_interpreter_s(texts in formulas(), gpus in -3..3i64, cpu in 0..100_000i64, burstable in any::<bool>(), zone in "(us|eu|)") {
        let mut context = Context::default();
        context.add_variable_from_value("gpus", gpus);
        context.add_variable_from_value("cpu_milli", cpu);
        context.add_variable_from_value("burstable", burstable);
        context.add_variable_from_value("flex", !burstable);
        context.add_variable_from_value("zone", zone.as_str());
        context.add_variable_from_value("family", "usa");
        let row = [
            (C::Gpus, gpus.into()),
            (C::CpuMilli, cpu.into()),
            (C::Burstable, burstable.into()),
            (C::Flex, (!burstable).into()),
            (C::Zone, zone.as_str().into()),
            (C::Family, "usa".into()),
        ];
        let ask = |rows: whittle_sdk::serde_json::Value| {
            let case = Case::new(json!({ "rows": rows })).candidate(row.clone());
            case.price::<Formula>().expect("the formula is right").remove(0)
        };
        for (text, truth) in [(&texts.int, false), (&texts.truth, true)] {
            let value = Program::compile(text).expect("the formula is right").execute(&context);
            let faulty = |field: &str| Verdict::Veto(format!("rows[0].{field} cannot be computed: a division by zero or a number too large"));
            if truth {
                let found = ask(json!([{"veto": text, "reason": "yes"}]));
                let expected = match value {
                    Ok(Value::Bool(true)) => Verdict::Veto("yes".to_owned()),
                    Ok(_) => Verdict::Answer { value: 0, cost: None },
                    Err(_) => faulty("veto"),
                };
                prop_assert_eq!(found, expected, "{}", text);
            } else {
                let found = ask(json!([{"rank": text}]));
                let expected = match value {
                    Ok(Value::Int(value)) => Verdict::Answer { value: value.clamp(0, 1_000_000_000_000), cost: None },
                    Ok(_) | Err(_) => faulty("rank"),
                };
                prop_assert_eq!(found, expected, "{}", text);
            }
        }
    }
}
