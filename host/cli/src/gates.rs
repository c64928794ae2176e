//! `--feature-gates` and `--min-values-policy`: the settings of the controller that change what is planned, by the names
//! that they have there.

use clap::{Args, ValueEnum};
use whittle_model::{Features, Settings};

/// What is switched on and off.
#[derive(Debug, Clone, Args)]
pub struct Gates {
    /// Feature gates, such as NodeOverlay=true,StaticCapacity=true
    #[arg(long, value_name = "NAME=BOOL,...", value_delimiter = ',', value_parser = parse)]
    pub feature_gates: Vec<Gate>,
    /// What becomes of minValues that no instance types can meet
    #[arg(long, value_enum, default_value_t = MinValues::Strict)]
    pub min_values_policy: MinValues,
}

/// One gate.
#[derive(Debug, Clone)]
pub struct Gate(String, bool);

/// `--min-values-policy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MinValues {
    /// Nothing is bought.
    Strict,
    /// What there is will do.
    BestEffort,
}

impl Gates {
    /// These settings with what the flags say of them.
    pub fn set(&self, mut settings: Settings) -> Settings {
        for Gate(name, on) in &self.feature_gates {
            if let Some(gate) = settings.features.gate(name) {
                *gate = *on;
            }
        }
        settings.relax_min_values = self.min_values_policy == MinValues::BestEffort;
        settings
    }
}

fn parse(text: &str) -> Result<Gate, String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is not NAME=true or NAME=false"))?;
    let on = value.parse().map_err(|_| format!("{value:?} is neither true nor false"))?;
    match Features::default().gate(name) {
        Some(_) => Ok(Gate(name.to_owned(), on)),
        None => Err(format!("there is no feature gate {name}; there are {}", Features::NAMES.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_named_and_switched() {
        let gates: Vec<Gate> = ["NodeOverlay=true", "ReservedCapacity=false"].into_iter().filter_map(|text| parse(text).ok()).collect();
        let settings = Gates { feature_gates: gates, min_values_policy: MinValues::BestEffort }.set(Settings::default());
        let features = Features { node_overlay: true, reserved_capacity: false, ..Features::default() };
        assert_eq!((settings.features, settings.relax_min_values), (features, true));
        for (text, why) in
            [("NodeOverlay", "is not NAME=true"), ("NodeOverlay=yes", "neither true nor false"), ("Nodes=true", "no feature gate Nodes")]
        {
            assert!(parse(text).is_err_and(|e| e.contains(why)), "{text}");
        }
    }
}
