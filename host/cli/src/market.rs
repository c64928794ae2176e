//! Types and prices as the command line names them: the built-in tables, or files instead.

use std::path::Path;

use whittle_catalog::{CatalogError, Facts, Prices, Sources};

use crate::args::Market;
use crate::failure::Failure;

/// The tables that the arguments mean.
///
/// # Errors
/// When a file cannot be read; the error names it, line and column.
pub fn sources(market: &Market) -> Result<Sources, Failure> {
    let mut sources = Sources::builtin(market.seed);
    if let Some(path) = &market.catalog {
        sources = sources.with_facts(table(path, Facts::parse)?);
    }
    if let Some(path) = &market.prices {
        sources = sources.with_prices(table(path, Prices::parse)?);
    }
    Ok(sources)
}

fn table<T>(path: &Path, parse: impl Fn(&str) -> Result<T, CatalogError>) -> Result<T, Failure> {
    let text = std::fs::read_to_string(path).map_err(|why| Failure::Read { path: path.to_owned(), why })?;
    parse(&text).map_err(|error| Failure::Table { path: path.to_owned(), error })
}
